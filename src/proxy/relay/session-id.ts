/** Headers in which clients send their session's id; the first one present is used. */
const sessionHeaders = [
  "x-claude-code-session-id",
  "x-session-affinity",
  "x-session-id",
  "session-id",
  "session_id",
  "x-client-session-id",
];

function sessionInHeaders(headers: Headers): string | undefined {
  for (const name of sessionHeaders) {
    const id = headers.get(name);
    if (id) return id;
  }
}

/** The client's session, if it names one. @param bodySession The session's id in the body; one in a header takes precedence. */
export function clientSession(headers: Headers, bodySession: unknown): string | undefined {
  const session = sessionInHeaders(headers) ?? bodySession;
  return typeof session === "string" && session !== "" ? named(session) : undefined;
}

const named = (id: string) => `session ${id.slice(0, 256)}`;

/** What the history calls a session. @param id As the client sends it. */
export const sessionHash = (id: string): string => shortHash(named(id));

/** Enough to tell sessions and prompts apart. */
export const shortHash = (text: string): string =>
  new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12);

/**
 * What the requests have in common whose prompts the upstream's cache should find: not always {@link clientSession}. A cache key
 * that the client wrote, or the session beside the prompt, says more of that than a header, which a program may send for several.
 * @param bodySession The cache key or the session's id in the body; it takes precedence.
 */
export const cacheSession = (headers: Headers, bodySession: unknown): string | undefined =>
  typeof bodySession === "string" && bodySession !== "" ? bodySession : sessionInHeaders(headers);
