/** Requests and replies of several dialects, looked at member by member. */
// biome-ignore lint/suspicious/noExplicitAny: JSON as it comes
export type Json = any;
