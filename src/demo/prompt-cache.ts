/**
 * The upstream's prompt cache. An account's prompts are cached for one model, by their beginning, for five minutes after
 * their last use. Claude caches up to the marks of the request. All other models cache every prompt, in steps of 128 tokens.
 */
import type { DemoAccount } from "./accounts";
import type { Model } from "./models";
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

type CacheUse = Pick<Usage, "cacheRead" | "cacheWrite">;

export function promptBlock(block: Json, role = ""): PromptBlock {
  const { cache_control, copilot_cache_control, ...rest } = block;
  return { text: `${role}${JSON.stringify(rest)}`, marked: cache_control != null || copilot_cache_control != null };
}

/** What of this prompt is read from the cache and written to it, in tokens. */
export function useCache(
  demo: DemoState,
  account: DemoAccount,
  model: Model,
  ask: ModelRequest,
  input: number,
): CacheUse {
  if (input < leastTokens) return { cacheRead: 0, cacheWrite: 0 };
  const cache = openCache(demo, `${account.login} ${model.id}`);
  return model.family === "claude" ? useMarks(cache, ask, input) : useSteps(cache, demo, model, ask, input);
}

interface PromptCache {
  name: string;
  has(start: Start): boolean;
  keep(start: Start): void;
}

/** A beginning of the prompt. */
interface Start {
  hash: bigint;
  tokens: number;
}

function openCache({ cached, now }: DemoState, name: string): PromptCache {
  const nameOf = ({ hash }: Start) => `${name} ${hash.toString(36)}`;
  return {
    name,
    has: (start) => (cached.get(nameOf(start)) ?? 0) > now(),
    keep(start) {
      cached.delete(nameOf(start));
      cached.set(nameOf(start), now() + lifetimeMs);
      const oldest = cached.keys().next();
      if (cached.size > maxCached && !oldest.done) cached.delete(oldest.value);
    },
  };
}

/** Claude: reads up to the last block that is cached, near a mark; writes from there up to the last mark. */
function useMarks(cache: PromptCache, { blocks }: ModelRequest, input: number): CacheUse {
  const length = blocks.reduce((sum, { text }) => sum + text.length, 0);
  let read = 0;
  let hash = 0n;
  const starts = blocks.map(({ text }): Start => {
    hash = Bun.hash.wyhash(text, hash);
    read += text.length;
    return { hash, tokens: Math.floor((input * read) / length) };
  });
  const marks = blocks.flatMap(({ marked }, at) => (marked && starts[at]!.tokens >= leastTokens ? [at] : []));
  const near = marks.flatMap((at) => starts.slice(Math.max(0, at - lookback), at + 1));
  const found = near.filter((start) => cache.has(start));
  const cacheRead = Math.max(0, ...found.map(({ tokens }) => tokens));
  for (const start of found) cache.keep(start);
  for (const at of marks) cache.keep(starts[at]!);
  return { cacheRead, cacheWrite: Math.max(0, ...marks.map((at) => starts[at]!.tokens)) - cacheRead };
}

/**
 * The others: the longest cached beginning is read. Without a key, every second request of OpenAI's models comes to a
 * machine that has not seen the prompt.
 */
function useSteps(cache: PromptCache, demo: DemoState, model: Model, ask: ModelRequest, input: number): CacheUse {
  if (model.family === "gpt" && ask.cacheKey === undefined) {
    const earlier = demo.keyless.get(cache.name) ?? 0;
    demo.keyless.set(cache.name, earlier + 1);
    if (earlier % 2 === 1) return { cacheRead: 0, cacheWrite: 0 };
  }
  const text = ask.blocks.map((block) => block.text).join("\n");
  let hash = Bun.hash.wyhash(ask.cacheKey ?? "");
  let cacheRead = 0;
  for (let end = step.length; end <= text.length; end += step.length) {
    hash = Bun.hash.wyhash(text.slice(end - step.length, end), hash);
    const start = { hash, tokens: Math.floor((input * end) / text.length / step.tokens) * step.tokens };
    if (start.tokens < leastTokens) continue;
    if (cache.has(start)) cacheRead = start.tokens;
    cache.keep(start);
  }
  return { cacheRead, cacheWrite: 0 };
}
