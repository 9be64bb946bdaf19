/**
 * Finds out why an upstream did not have a prompt in its cache that it should have had. It remembers hashes of how each
 * conversation's prompt begins, in memory, never content.
 */

import type { PromptHead } from "../../dialects/overview";
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
  head: HeadHashes;
}

/** The parts of the prompt's beginning, each as one number. */
export type HeadHashes = Readonly<Record<keyof PromptHead, number | bigint>>;

export interface JudgedMiss {
  reason: CacheMiss;
  /** How long the prompt had not been used, ms; only if that is the reason. */
  idleMs: number | null;
}

/** Tokens: upstreams do not cache shorter prompts. */
export const leastTokens = 1024;
/** How long upstreams keep a prompt after its last use, as it was written, ms. */
export const lifetimes = { usual: 5 * 60_000, hour: hourMs };
/** Of the prompt before: when less of it was read, the prompt was not found. */
const leastShare = 0.5;
const maxConversations = 2_000;
const maxModels = 8;

interface Prompt {
  account: string;
  lifetime: keyof typeof lifetimes;
  endedAtMs: number;
  input: number;
  head: HeadHashes;
}

const newPrompts = () => new BoundedMap<string, Prompt>(maxModels);

export class CacheWatch {
  /** By client and first message, because a session may have agents whose prompts begin differently; then by model. */
  readonly #conversations = new BoundedMap<string, BoundedMap<string, Prompt>>(maxConversations);

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  /** Null if enough was read from the cache, or if none was expected to be there. */
  judge(turn: CachedTurn): JudgedMiss | null {
    if (turn.input < leastTokens) return null;
    const name = `${turn.client} ${turn.head.first}`;
    const prompts = this.#conversations.renewed(name, newPrompts);
    const before = prompts.get(turn.model);
    const isFound = turn.cached >= leastShare * Math.min(turn.input, before?.input ?? turn.input);
    // What was written for an hour is kept for another one whenever it is read.
    const lifetime: Prompt["lifetime"] = turn.writtenHour > 0 ? "hour" : isFound && before ? before.lifetime : "usual";
    const { account, head, input } = turn;
    const prompt: Prompt = { head, lifetime, account, endedAtMs: this.now(), input };
    const idleMs = before ? prompt.endedAtMs - turn.durationMs - before.endedAtMs : 0;
    const reason = isFound ? null : before ? reasonOf(turn, prompt, before, idleMs) : reasonOfFirst(prompt, prompts);
    prompts.set(turn.model, prompt);
    return reason && { reason, idleMs: reason === "expired" || reason === "expired_long" ? idleMs : null };
  }
}

/** Another lifetime would have kept what `expired`, and none keeps what `expired_long`. */
function reasonOf(turn: CachedTurn, prompt: Prompt, before: Prompt, idleMs: number): CacheMiss {
  if (before.account !== prompt.account) return "account";
  if (before.head.tools !== prompt.head.tools) return "tools";
  if (before.head.system !== prompt.head.system) return "system";
  if (idleMs > lifetimes.hour) return "expired_long";
  if (idleMs > lifetimes[before.lifetime]) return "expired";
  if (turn.input < before.input) return "shortened";
  if (turn.address === "no key") return "no_key";
  return turn.address === "marks" && turn.cached + turn.written === 0 ? "no_marks" : "unknown";
}

/** The first prompt for a model misses nothing, unless another model has had the same one. */
function reasonOfFirst(prompt: Prompt, prompts: ReadonlyMap<string, Prompt>): CacheMiss | null {
  const isSame = ({ head }: Prompt) => head.system === prompt.head.system && head.tools === prompt.head.tools;
  return [...prompts.values()].some(isSame) ? "model" : null;
}
