/** The hints an upstream's prompt cache gets, and how it finds a prompt. */
import type { App } from "../app";
import type { CacheHints } from "../dialects/codecs";
import { type ClientDialect, type Dialect, familyOf } from "../dialects/hub/conversation";
import type { CacheAddress } from "../upstream/cache-watch";
import { sessionIn } from "./session-id";
import type { Target } from "./target";

interface CacheUse {
  /** What is added because the client's dialect has no field for it; undefined if the config turns it off. */
  hints: CacheHints | undefined;
  address: CacheAddress;
}

/** @param request `bodySession` is the cache key or the session's id in the body. */
export function cacheUseOf(
  { config }: Pick<App, "config">,
  request: { headers: Headers; bodySession: unknown; client: ClientDialect },
  target: Target & { dialect: Dialect },
): CacheUse {
  const clientFamily = familyOf[request.client];
  // A provider may refuse a field that it does not know; of the Messages API the marks are a part.
  if (target.provider) {
    const hints = { marks: clientFamily !== "anthropic" && target.dialect === "messages" };
    return { hints: config.current.promptCache === "off" ? undefined : hints, address: "prompt" };
  }
  const session = sessionIn(request.headers, request.bodySession);
  const isKeyless = clientFamily !== "openai" && familyOf[target.dialect] === "openai";
  // Without a session no key is sent: one that many sessions share would be worse than none.
  const key = isKeyless && session !== undefined ? cacheKey(session) : undefined;
  const hints = config.current.promptCache === "off" ? undefined : { key, marks: clientFamily !== "anthropic" };
  const isKeyed = isKeyless ? hints?.key !== undefined : request.bodySession != null;
  return { hints, address: addressOf(target.model.vendor, isKeyed) };
}

function addressOf(vendor: string, isKeyed: boolean): CacheAddress {
  if (vendor === "Anthropic") return "marks";
  if (!vendor.includes("OpenAI")) return "prompt";
  return isKeyed ? "key" : "no key";
}

/** The longest key that OpenAI accepts. */
const maxKey = 64;

const cacheKey = (session: string): string =>
  session.length <= maxKey ? session : new Bun.CryptoHasher("sha256").update(session).digest("hex");
