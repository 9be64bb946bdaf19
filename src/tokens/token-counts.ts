/**
 * The input tokens of a conversation: an estimate by the local vocabulary, until enough of a model's exchanges have shown
 * how its own tokenizer counts. All counting is done by the tokenizer's worker.
 */

import { setImmediate } from "node:timers/promises";
import type { Config } from "../config/schema";
import type { Conversation } from "../dialects/hub/conversation";
import type { Logger } from "../logger";
import { type LongText, lengthOf, type ReadText } from "../net/json/json-skeleton";
import { type PromptParts, promptPartsOf } from "./estimate";
import {
  enoughExchanges,
  type LocalCount,
  learnFactor,
  leastOf,
  leastUnknown,
  marginOf,
  newFactor,
  predict,
  type TokenFactor,
} from "./token-factor";
import { FactorFile, type TokenFactors } from "./token-factor-file";
import type { Tokenizer } from "./tokenizer";

export interface TokenCount {
  tokens: number;
  how: "calibrated" | "estimate";
  /** The fewest that the model can be expected to count. */
  atLeast: number;
}

/** A conversation that is decoded when it is counted. */
export interface Prompt {
  /** Undefined if the request cannot be decoded; it is not counted then. */
  conversation(): Conversation | undefined;
  /** Missing if no text is marked. */
  whole?: ReadText;
}

type CountedPrompt = LocalCount & Pick<PromptParts, "media">;

/** Learns from an exchange that was served. */
export type Lesson = (usage: { input?: number }) => Promise<boolean>;

interface TokenCountsOptions {
  config: () => Pick<Config, "tokenCalibration" | "tokenEstimateMultiplier">;
  tokenizer: Tokenizer;
  /** The factors' file. */
  path: string;
  logger: Pick<Logger, "warn">;
  /** Unix ms. */
  now(): number;
  /** A monotonic clock, ms. */
  monotonic(): number;
}

/** Tokens of the smallest prompt that teaches: in a smaller one the framing weighs too much. */
const smallestPrompt = 2_000;
/** A token has hardly ever fewer bytes. */
export const bytesPerToken = 2;
/** Characters of the largest prompt that is counted only to learn. */
const largestLength = 2_000_000;
/** The share of images and documents above which a prompt teaches nothing of texts. */
const maxMediaShare = 0.3;
/** Milliseconds between two exchanges that are learnt from, and between two of a model of which enough is known. */
const learnEvery = 1_000;
const refreshEvery = 600_000;
/** Learning takes at most a fifth of the worker's time. */
const restShare = 4;

/** Characters above which a rough count reads a part of each text, and up to which it needs no vocabulary. */
const roughLength = 400_000;
const smallLength = 8_000;
const charactersPerToken = 4;
/** Characters that wait for the worker, half a second of its work, above which no rough count is begun: it would come too late. */
const maxBacklog = 500_000;

export class TokenCounts {
  readonly #options: TokenCountsOptions;
  readonly #factors: TokenFactors = new Map();
  readonly #file: FactorFile;
  /** When a model's factor was last refreshed. */
  readonly #refreshedAt = new Map<string, number>();
  #isLearning = false;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(options: TokenCountsOptions) {
    this.#options = options;
    this.#file = new FactorFile(this.#factors, options);
  }

  /**
   * @param model The upstream's id; its factor is used if enough is known.
   * @param whole As {@link Prompt.whole}.
   * @throws Error if the tokenizer cannot be run.
   */
  async count(conversation: Conversation, model?: string, whole?: Prompt["whole"]): Promise<TokenCount> {
    return this.#countOf(await countLocally(promptPartsOf(conversation, whole), this.#options.tokenizer), model);
  }

  /**
   * Starts a rough count that nothing waits for. It keeps nothing of the prompt. @param isStream For a full reply the length will do.
   * @returns Reads what is known by now; undefined for a prompt that cannot be decoded.
   */
  beginCount(prompt: Prompt, model: string, isStream: boolean): () => number | undefined {
    const known: { tokens?: number } = {};
    void this.#countRoughly(prompt, model, isStream, known);
    return () => known.tokens;
  }

  async #countRoughly(prompt: Prompt, model: string, isStream: boolean, known: { tokens?: number }): Promise<void> {
    const { tokenizer } = this.#options;
    const parts = await partsAfterSending(prompt);
    if (parts === undefined) return;
    // The vocabulary may still be loading when the reply begins, or the worker be busy.
    known.tokens = this.#countOf(byLength(parts), model).tokens;
    if (!isStream || parts.length <= smallLength || tokenizer.backlog > maxBacklog) return;
    try {
      const local = await countLocally(parts, tokenizer, Math.min(1, roughLength / parts.length));
      known.tokens = this.#countOf(local, model).tokens;
    } catch {
      // Without a tokenizer the estimate by length is all there is.
    }
  }

  /**
   * Counts a prompt to learn from it, unless there was another one a moment ago. It keeps nothing of the prompt.
   * @param bytes The length of the request's body.
   * @returns Learns from the input tokens that the upstream has reported. Resolves to whether anything was learnt.
   */
  beginLesson(model: string, prompt: Prompt, bytes: number): Lesson | undefined {
    const isWanted = bytes >= smallestPrompt * bytesPerToken && this.#options.config().tokenCalibration;
    return isWanted && this.#mayLearn(model) ? this.#lessonOf(model, prompt) : undefined;
  }

  #lessonOf(model: string, prompt: Prompt): Lesson {
    this.#nextAt = this.#options.monotonic() + learnEvery;
    const counted = this.#countToLearn(prompt);
    return async ({ input }) => this.#learn(model, await counted, input);
  }

  async #countToLearn(prompt: Prompt): Promise<CountedPrompt | undefined> {
    const { monotonic, tokenizer } = this.#options;
    this.#isLearning = true;
    const parts = await partsAfterSending(prompt);
    const begunAt = monotonic();
    try {
      if (parts === undefined || parts.length > largestLength) return undefined;
      return { ...(await countLocally(parts, tokenizer)), media: parts.media };
    } catch {
      return undefined; // The tokenizer was closed, or could not be run: another exchange will teach as much.
    } finally {
      this.#isLearning = false;
      this.#nextAt = Math.max(this.#nextAt, monotonic() + restShare * (monotonic() - begunAt));
    }
  }

  #learn(model: string, local: CountedPrompt | undefined, reported: number | undefined): boolean {
    const { config, monotonic, now } = this.#options;
    if (reported === undefined || !Number.isFinite(reported) || reported < smallestPrompt) return false;
    if (local === undefined || local.media > reported * maxMediaShare) return false;
    const before = this.#factors.get(model) ?? newFactor(config().tokenEstimateMultiplier);
    const factor = learnFactor(before, local, reported, Math.round(now()));
    if (!factor) return false;
    this.#factors.set(model, factor);
    this.#refreshedAt.set(model, monotonic());
    this.#file.changed();
    return true;
  }

  /** What was learnt of a model, and whether it is used already. */
  factorOf(model: string): (TokenFactor & { used: boolean }) | undefined {
    const factor = this.#factors.get(model);
    return factor && { ...factor, used: this.#used(model) !== undefined };
  }

  close(): void {
    this.#file.close();
  }

  #used(model: string | undefined): TokenFactor | undefined {
    const factor = model === undefined ? undefined : this.#factors.get(model);
    const isUsed = this.#options.config().tokenCalibration && factor && factor.exchanges >= enoughExchanges;
    return isUsed ? factor : undefined;
  }

  #countOf(local: LocalCount, model: string | undefined): TokenCount {
    const { texts, tools, fixed } = local;
    const factor = this.#used(model);
    if (!factor) {
      const tokens = Math.ceil((texts + tools) * this.#options.config().tokenEstimateMultiplier + fixed);
      return { tokens, how: "estimate", atLeast: leastUnknown(local) };
    }
    const ownCount = predict(factor, { texts, tools, fixed: 0 });
    const tokens = Math.ceil(ownCount * (1 + marginOf(factor)) + fixed);
    return { tokens, how: "calibrated", atLeast: leastOf(factor, local) };
  }

  #mayLearn(model: string): boolean {
    const at = this.#options.monotonic();
    if (this.#isLearning || at < this.#nextAt) return false;
    const isKnown = (this.#factors.get(model)?.exchanges ?? 0) >= enoughExchanges;
    return !isKnown || at >= (this.#refreshedAt.get(model) ?? Number.NEGATIVE_INFINITY) + refreshEvery;
  }
}

/** The request is sent first. */
async function partsAfterSending(prompt: Prompt): Promise<PromptParts | undefined> {
  await setImmediate();
  const decoded = prompt.conversation();
  return decoded && promptPartsOf(decoded, prompt.whole);
}

/** @param share Of each text, the part that is read: its beginning is taken for all of it. */
async function countLocally(parts: PromptParts, tokenizer: Tokenizer, share = 1): Promise<LocalCount> {
  const { texts, tools, fixed, whole } = parts;
  const read = (text: LongText) => whole(text, Math.ceil(lengthOf(text) * share));
  const [ofTexts, ofTools] = await Promise.all([countAll(texts, read, tokenizer), countAll(tools, read, tokenizer)]);
  return { texts: ofTexts / share, tools: ofTools / share, fixed };
}

/** Characters, roughly, that are read and sent to the worker at a time, so that streams go on in between. */
const mostAtOnce = 250_000;

async function countAll(
  texts: readonly LongText[],
  read: (text: LongText) => string,
  tokenizer: Tokenizer,
): Promise<number> {
  let tokens = 0;
  let next = 0;
  while (next < texts.length) {
    const some: string[] = [];
    for (let length = 0; next < texts.length && length < mostAtOnce; next++) {
      some.push(read(texts[next]!));
      length += some.at(-1)!.length;
    }
    tokens += await tokenizer.count(some);
  }
  return tokens;
}

function byLength({ tools, fixed, length }: PromptParts): LocalCount {
  const ofTools = tools.reduce((sum, tool) => sum + tool.length, 0);
  return { texts: (length - ofTools) / charactersPerToken, tools: ofTools / charactersPerToken, fixed };
}
