/** Headers in which clients send their session's id; the first one present is used. */
const sessionHeaders = [
  "x-claude-code-session-id",
  "x-session-affinity",
  "x-session-id",
  "session-id",
  "session_id",
  "x-client-session-id",
];

export function sessionInHeaders(headers: Headers): string | undefined {
  for (const name of sessionHeaders) {
    const id = headers.get(name);
    if (id) return id;
  }
}

/**
 * The client's session, where it sends one.
 * @param bodySession The cache key or the session's id in the body; it takes precedence.
 */
export const sessionIn = (headers: Headers, bodySession: unknown): string | undefined =>
  typeof bodySession === "string" && bodySession !== "" ? bodySession : sessionInHeaders(headers);
