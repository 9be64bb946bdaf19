/**
 * Finds out why an upstream did not have a prompt in its cache that it should have had: the prompt is compared with the one before
 * it in its conversation, part by part. Hashes and sizes are remembered, in memory, never content.
 */

import type { PromptHashes } from "../../dialects/prompt-pieces";
import { BoundedMap } from "../../lib/bounded-map";
import { hourMs } from "../../lib/format";

/** Why a prompt was not found. The first one that applies is given. */
export const cacheMisses = [
  "model",
  "account",
  "tools",
  "system",
  "expired",
  "expired_long",
  "rewritten",
  "shortened",
  "no_key",
  "no_marks",
  "unknown",
] as const;
export type CacheMiss = (typeof cacheMisses)[number];

/** How the upstream finds a prompt: by a key, up to marks, or by the prompt alone. */
export type CacheAddress = "key" | "no key" | "marks" | "prompt";

/** A request whose usage is known. */
export interface CachedTurn {
  /** Of the client: its session if it sends one, else its name. */
  client: string;
  model: string;
  account: string;
  address: CacheAddress;
  durationMs: number;
  input: number;
  cached: number;
  written: number;
  /** Part of `written` that the cache keeps for an hour. */
  writtenHour: number;
  hashes: PromptHashes;
}

/** What changed. Names of tools are at most {@link maxNames}. */
export interface CacheChange {
  added?: string[];
  removed?: string[];
  /** Their definitions are others. */
  changed?: string[];
  /** The first message that is another one, counted from 1, and how many there are. */
  message?: number;
  of?: number;
  /** The model that had the prompt in its cache. */
  model?: string;
}

export interface JudgedMiss {
  reason: CacheMiss;
  /** How long the prompt had not been used, ms; only if that is the reason. */
  idleMs: number | null;
  change: CacheChange | null;
  /** Tokens that the cache had and that were not read from it. */
  lost: number;
}

interface Judged {
  /** Null if enough was read from the cache, or if none was expected to be there. */
  miss: JudgedMiss | null;
  /** The sizes of the request before in the conversation, by what `keepSizes` has got; undefined if it is not known. */
  before: ReadonlyMap<string, number> | undefined;
  /** To be called with this request's. */
  keepSizes(sizes: ReadonlyMap<string, number>): void;
}

/** Tokens: upstreams do not cache shorter prompts. */
export const leastTokens = 1024;
/** How long upstreams keep a prompt after its last use, as it was written, ms. */
export const lifetimes = { usual: 5 * 60_000, hour: hourMs };
/** Of the prompt before: when less of it was read, the prompt was not found. */
const leastShare = 0.5;
/** What the hashes show to have changed is a miss, too, if a prompt was found and so much of the one before was not read. */
const partial = { reasons: new Set<CacheMiss>(["tools", "system", "rewritten"]), leastShare: 0.05 };
const maxConversations = 2_000;
const maxModels = 4;
/** Names of each list in a change. */
const maxNames = 5;

interface Prompt {
  account: string;
  lifetime: keyof typeof lifetimes;
  endedAtMs: number;
  input: number;
  hashes: PromptHashes;
  sizes?: ReadonlyMap<string, number>;
}

const newPrompts = () => new BoundedMap<string, Prompt>(maxModels);

export class CacheWatch {
  /** By client and first message, because a session may have agents whose prompts begin differently; then by model. */
  readonly #conversations = new BoundedMap<string, BoundedMap<string, Prompt>>(maxConversations);
  /** The same by the second message: the first one may be rewritten, as it has the day's date in some clients. */
  readonly #bySecond = new BoundedMap<string, BoundedMap<string, Prompt>>(maxConversations);

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  judge(turn: CachedTurn): Judged {
    const { account, input } = turn;
    const prompts = this.#promptsOf(turn);
    const before = prompts.get(turn.model);
    const expected = Math.min(input, before?.input ?? input);
    const isFound = turn.cached >= leastShare * expected;
    const lost = expected - turn.cached;
    // What was written for an hour is kept for another one whenever it is read.
    const lifetime: Prompt["lifetime"] = turn.writtenHour > 0 ? "hour" : isFound && before ? before.lifetime : "usual";
    const hashes = { ...turn.hashes, tools: sameTools(turn.hashes, before?.hashes) ?? turn.hashes.tools };
    const prompt: Prompt = { hashes, lifetime, account, endedAtMs: this.now(), input };
    const isPart = isFound && lost >= Math.max(leastTokens, partial.leastShare * expected);
    const isExpected = input >= leastTokens && (!isFound || isPart);
    const found = isExpected && (before ? reasonOf(turn, prompt, before) : reasonOfFirst(prompt, prompts));
    prompts.set(turn.model, prompt);
    const miss =
      found && (!isPart || partial.reasons.has(found.reason))
        ? {
            reason: found.reason,
            idleMs: found.idleMs ?? null,
            change: found.change ?? null,
            lost,
          }
        : null;
    return {
      miss,
      before: before?.sizes,
      keepSizes(sizes) {
        prompt.sizes = sizes;
      },
    };
  }

  #promptsOf({ client, model, hashes }: CachedTurn): BoundedMap<string, Prompt> {
    const [first, second] = hashes.messages;
    const other = second === undefined ? undefined : this.#bySecond.get(`${client} ${second}`);
    const prompts = this.#conversations.renewed(`${client} ${first}`, () =>
      other && differsAtFirst(other.get(model)?.hashes, hashes) ? other : newPrompts(),
    );
    if (second !== undefined) this.#bySecond.set(`${client} ${second}`, prompts);
    return prompts;
  }
}

interface Reason {
  reason: CacheMiss;
  idleMs?: number;
  change?: CacheChange;
}

/** Another lifetime would have kept what `expired`, and none keeps what `expired_long`. */
function reasonOf(turn: CachedTurn, prompt: Prompt, before: Prompt): Reason {
  if (before.account !== prompt.account) return { reason: "account" };
  if (!sameTools(prompt.hashes, before.hashes))
    return { reason: "tools", change: toolsChanged(before.hashes.tools, prompt.hashes.tools) };
  if (before.hashes.system !== prompt.hashes.system) return { reason: "system" };
  const idleMs = prompt.endedAtMs - turn.durationMs - before.endedAtMs;
  if (idleMs > lifetimes.hour) return { reason: "expired_long", idleMs };
  if (idleMs > lifetimes[before.lifetime]) return { reason: "expired", idleMs };
  const at = rewrittenAt(before.hashes, prompt.hashes);
  const change = at === undefined ? undefined : { message: at + 1, of: before.hashes.messageCount };
  if (prompt.hashes.messageCount < before.hashes.messageCount) return { reason: "shortened", change };
  if (change) return { reason: "rewritten", change };
  if (turn.address === "no key") return { reason: "no_key" };
  return { reason: turn.address === "marks" && turn.cached + turn.written === 0 ? "no_marks" : "unknown" };
}

/** The first prompt for a model misses nothing, unless another model has had the same one. */
function reasonOfFirst(prompt: Prompt, prompts: ReadonlyMap<string, Prompt>): Reason | null {
  const { hashes } = prompt;
  for (const [model, other] of [...prompts].reverse())
    if (other.hashes.system === hashes.system && sameTools(hashes, other.hashes))
      return { reason: "model", change: { model } };
  return null;
}

/** The other's tools, if they are the same in the same order. */
function sameTools({ tools }: PromptHashes, other: PromptHashes | undefined): PromptHashes["tools"] | undefined {
  if (tools.size !== other?.tools.size) return undefined;
  const others = other.tools.entries();
  for (const [name, hash] of tools) {
    const [otherName, otherHash] = others.next().value!;
    if (name !== otherName || hash !== otherHash) return undefined;
  }
  return other.tools;
}

/** Empty where nothing but the order is another, or the tools have no names. */
function toolsChanged(before: PromptHashes["tools"], after: PromptHashes["tools"]): CacheChange {
  const named = (tools: PromptHashes["tools"], isOne: (name: string) => boolean) => {
    const names = [...tools.keys()].filter((name) => name !== "" && isOne(name)).slice(0, maxNames);
    return names.length > 0 ? names : undefined;
  };
  const added = named(after, (name) => !before.has(name));
  const removed = named(before, (name) => !after.has(name));
  const changed = named(after, (name) => before.has(name) && before.get(name) !== after.get(name));
  return { ...(added && { added }), ...(removed && { removed }), ...(changed && { changed }) };
}

/** Messages that two conversations have to have in common: subagents of one task may begin with the same answer. */
const leastInCommon = 3;

/** Whether the later prompt is the earlier one, and perhaps more, but for its first message. */
function differsAtFirst(before: PromptHashes | undefined, after: PromptHashes): boolean {
  if (!before || before.system !== after.system || !sameTools(after, before)) return false;
  if (before.messageCount > after.messageCount || before.isLarge !== after.isLarge) return false;
  if (before.messages.length <= leastInCommon) return false;
  return before.messages.every((message, at) => at === 0 || message === after.messages[at]);
}

/** The first message of those before that is another one now; undefined if none is, or if it is not known. */
function rewrittenAt(before: PromptHashes, after: PromptHashes): number | undefined {
  if (before.isLarge !== after.isLarge) return undefined;
  const count = Math.min(before.messages.length, after.messages.length);
  for (let at = 0; at < count; at += 1) if (before.messages[at] !== after.messages[at]) return at;
  return undefined;
}
