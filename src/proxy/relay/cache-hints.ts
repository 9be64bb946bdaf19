/** The hints an upstream's prompt cache gets, and how it finds a prompt. */

import type { CacheHints } from "../../dialects/codecs";
import { type Dialect, familyOf } from "../../dialects/hub/conversation";
import type { RequestScope } from "../scope";
import { measurePrompt } from "../tokens/measured-prompt";
import { type CacheAddress, leastTokens } from "../upstream/cache-watch";
import type { RecordedPrompt } from "./book";
import type { Exchange } from "./exchange";
import { cacheSession } from "./session-id";
import type { Target } from "./target";

interface CacheUse {
  /** The hints for which the client's dialect has no field; undefined if the config turns them off. */
  hints: CacheHints | undefined;
  address: CacheAddress;
}

export function cacheUseOf(
  { config }: RequestScope,
  { dialect, headers, bodySession }: Exchange,
  target: Target & { dialect: Dialect },
): CacheUse {
  const clientFamily = familyOf[dialect];
  // A provider may refuse a field that it does not know; of the Messages API the marks are a part.
  if (target.provider) {
    const hints = { marks: clientFamily !== "anthropic" && target.dialect === "messages" };
    return { hints: config.current.promptCache === "off" ? undefined : hints, address: "prompt" };
  }
  const isKeyless = clientFamily !== "openai" && familyOf[target.dialect] === "openai";
  // Without a session no key is sent: one that many sessions share would be worse than none.
  const session = isKeyless ? cacheSession(headers, bodySession) : undefined;
  const key = session === undefined ? undefined : cacheKey(session);
  const hints = config.current.promptCache === "off" ? undefined : { key, marks: clientFamily !== "anthropic" };
  const isKeyed = isKeyless ? hints?.key !== undefined : bodySession != null;
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

/** What the prompt is made of, and how the upstream's cache finds it; undefined for one that is too short for a cache. */
export function recordedPrompt(
  { incoming, outline, whole }: Exchange,
  address: CacheAddress,
): RecordedPrompt | undefined {
  // No token has less than a byte.
  const isTooShort = incoming.bytes.length < leastTokens;
  return isTooShort ? undefined : { address, measured: measurePrompt(outline, incoming.bytes, whole) };
}
