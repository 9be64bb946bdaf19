/** What the command line or the environment got wrong, in a sentence: exit code 2. */
export class UsageError extends Error {}
