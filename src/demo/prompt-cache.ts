/**
 * The upstream's prompt cache. An account's prompts are cached for one model, by their beginning, for five minutes after
 * their last use. Claude caches up to the marks of the request. All other models cache every prompt, in steps of 128 tokens.
 * Only models with a price for it, Claude and the newer GPT, count what they write.
 */
import type { DemoAccount } from "./accounts";
import type { Model } from "./model";
import type { ModelRequest, PromptBlock, Usage } from "./parse-prompt";
import type { DemoState } from "./state";
import type { Json } from "./wire";

const lifetimeMs = 5 * 60_000;
/** Tokens: shorter prompts are not cached. */
const leastTokens = 1024;
/** In tokens and in characters. */
const step = { tokens: 128, length: 512 };
/** How many blocks before its mark a cached beginning is looked for. */
const lookback = 20;
const maxCached = 100_000;

export function promptBlock(block: Json, role = ""): PromptBlock {
  const { cache_control, copilot_cache_control, ...rest } = block;
  return { text: `${role}${JSON.stringify(rest)}`, marked: cache_control != null || copilot_cache_control != null };
}

/** A beginning of the prompt. */
interface Start {
  hash: bigint;
  tokens: number;
  /** It may have been cached by an earlier prompt. */
  isRead: boolean;
  /** It is cached for later ones. */
  isKept: boolean;
}

/** What of this prompt is read from the cache and written to it, in tokens. */
export function useCache(
  demo: DemoState,
  account: DemoAccount,
  model: Model,
  ask: ModelRequest,
  input: number,
): Pick<Usage, "cacheRead" | "cacheWrite"> {
  const name = `${account.login} ${model.id}`;
  if (input < leastTokens || (model.family === "gpt" && isElsewhere(demo, name, ask)))
    return { cacheRead: 0, cacheWrite: 0 };
  const { cached, now } = demo;
  const nameOf = ({ hash }: Start) => `${name} ${hash.toString(36)}`;
  const starts = model.family === "claude" ? startsByMarks(ask, input) : startsBySteps(ask, input);
  const found = starts.filter((start) => start.isRead && (cached.get(nameOf(start)) ?? 0) > now());
  const kept = starts.filter((start) => start.isKept);
  for (const start of [...found, ...kept]) {
    cached.delete(nameOf(start));
    cached.set(nameOf(start), now() + lifetimeMs);
  }
  // Many at once: a walk from the start passes the places of what was removed before.
  if (cached.size > maxCached)
    for (const oldest of cached.keys()) {
      if (cached.size <= 0.9 * maxCached) break;
      cached.delete(oldest);
    }
  const cacheRead = found.at(-1)?.tokens ?? 0;
  const cacheWrite = model.prices.cacheWrite === undefined ? 0 : (kept.at(-1)?.tokens ?? 0) - cacheRead;
  return { cacheRead, cacheWrite };
}

/** Without a key, every second request of OpenAI's models comes to a machine that has not seen the prompt. */
function isElsewhere({ keyless }: DemoState, name: string, { cacheKey }: ModelRequest): boolean {
  if (cacheKey !== undefined) return false;
  const earlier = keyless.get(name) ?? 0;
  keyless.set(name, earlier + 1);
  return earlier % 2 === 1;
}

/** Claude: up to each block. Those near a mark are read, those with a mark are kept. */
function startsByMarks({ blocks }: ModelRequest, input: number): Start[] {
  const length = blocks.reduce((sum, { text }) => sum + text.length, 0);
  let read = 0;
  let hash = 0n;
  const starts = blocks.map(({ text, marked }) => {
    hash = Bun.hash.wyhash(text, hash);
    read += text.length;
    const tokens = Math.floor((input * read) / length);
    return { hash, tokens, isKept: marked && tokens >= leastTokens };
  });
  return starts.map((start, at) => ({
    ...start,
    isRead: starts.slice(at, at + lookback + 1).some(({ isKept }) => isKept),
  }));
}

/** The others: up to each step. */
function startsBySteps({ blocks, cacheKey = "" }: ModelRequest, input: number): Start[] {
  const text = blocks.map((block) => block.text).join("\n");
  let hash = Bun.hash.wyhash(cacheKey);
  return Array.from({ length: Math.floor(text.length / step.length) }, (_, at) => {
    const end = (at + 1) * step.length;
    hash = Bun.hash.wyhash(text.slice(end - step.length, end), hash);
    const tokens = Math.floor((input * end) / text.length / step.tokens) * step.tokens;
    return { hash, tokens, isRead: tokens >= leastTokens, isKept: tokens >= leastTokens };
  });
}
