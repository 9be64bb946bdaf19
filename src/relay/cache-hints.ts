/** What is added to a request for the upstream's prompt cache, where the client's dialect has no field for it. */
import type { App } from "../app";
import type { CacheHints } from "../dialects/codecs";
import { type Dialect, familyOf } from "../dialects/hub/conversation";

interface CacheFacts {
  headers: Headers;
  /** What the request's body names: a cache key of the client's own, or its session. */
  bodySession: unknown;
  client: Dialect;
  upstream: Dialect;
}

/** Undefined if the config turns it off. */
export function cacheHints(
  { config }: Pick<App, "config">,
  { headers, bodySession, client, upstream }: CacheFacts,
): CacheHints | undefined {
  if (config.current.promptCache === "off") return undefined;
  const isKeyless = familyOf[client] === "anthropic" && familyOf[upstream] === "openai";
  return {
    key: isKeyless ? cacheKey(headers, bodySession) : undefined,
    marks: familyOf[client] === "openai",
  };
}

/** Headers in which Anthropic's clients send their session's id. */
const headerNames = ["x-claude-code-session-id", "x-session-id"];

/** The longest key that OpenAI accepts. */
const maxKey = 64;

/** Undefined if the session is not known: a key that many sessions share would be worse than none. */
function cacheKey(headers: Headers, bodySession: unknown): string | undefined {
  const session = [bodySession, ...headerNames.map((name) => headers.get(name))].find(
    (id) => typeof id === "string" && id !== "",
  );
  if (typeof session !== "string") return undefined;
  return session.length <= maxKey ? session : new Bun.CryptoHasher("sha256").update(session).digest("hex");
}
