/**
 * The input tokens of a conversation, estimated by the local vocabulary and by how each model was seen to count. All counting is
 * done by the tokenizer's worker. Only models of which somebody wants counts are learnt: the vocabulary takes 50 MB and half a
 * second of a core.
 */

import { setImmediate } from "node:timers/promises";
import type { History } from "../../books/history/history";
import { maxRatios } from "../../books/history/token-ratios";
import type { Config } from "../../config/schema";
import type { Conversation } from "../../dialects/hub/conversation";
import { BoundedMap } from "../../lib/bounded-map";
import type { Logger } from "../../lib/logger";
import { bytesOf, type LongText, type ReadText } from "../../lib/net/json/json-skeleton";
import { type PromptParts, promptPartsOf } from "./estimate";
import { bounded, type LocalCount, learnRatio, type TokenRatio } from "./token-ratio";
import type { Tokenizer } from "./tokenizer";

export interface TokenCount {
  tokens: number;
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
export type RatioLesson = (usage: { input?: number }) => Promise<boolean>;

interface TokenCountsOptions {
  config: () => Pick<Config, "tokenEstimateMultiplier">;
  tokenizer: Tokenizer;
  history: Pick<History, "tokenRatios" | "keepTokenRatio">;
  logger: Pick<Logger, "debug">;
  /** A monotonic clock, ms. */
  monotonic(): number;
}

/** The share by which a count by a learnt ratio errs high, so that a client compacts too early rather than too late. */
const margin = 0.03;
/** What is left of an estimate that is certain: prompts differ in their share of tools, which some upstreams shorten. */
const certainShare = 0.85;
/** After so many requests the ratio is trusted for what is certain, too, and learnt from rarely. */
const enoughRequests = 20;

/** Tokens of the smallest prompt that teaches: in a smaller one the framing weighs too much. */
const smallestPrompt = 2_000;
/** A token has hardly ever fewer bytes. */
export const bytesPerToken = 2;
/** Bytes of a token on average, in English and code, and in Chinese as well. */
const averageBytes = 4;
/** Bytes of the texts of the largest prompt that is counted only to learn. */
const largestLesson = 2_000_000;
/** The share of images and documents above which a prompt teaches nothing of texts. */
const maxMediaShare = 0.3;
/** Milliseconds between two requests that a model is learnt from, at first and when enough is known. */
const learnEvery = { first: 10_000, later: 600_000 };
/** Characters of the longest name of a model that is learnt. */
const longestName = 200;

export class TokenCounts {
  readonly #options: TokenCountsOptions;
  readonly #ratios = new BoundedMap<string, TokenRatio>(maxRatios);
  /** When the models of which somebody wants counts may be learnt from next, by the monotonic clock. */
  readonly #wanted = new BoundedMap<string, number>(maxRatios);

  constructor(options: TokenCountsOptions) {
    this.#options = options;
    void this.#load();
  }

  async #load(): Promise<void> {
    const { history, logger } = this.#options;
    try {
      for (const { model, ratio, requests } of await history.tokenRatios())
        if (!this.#ratios.has(model)) this.#ratios.set(model, { ratio: bounded(ratio), requests });
    } catch (thrown) {
      logger.debug("How models count tokens is learnt anew: it could not be read.", thrown);
    }
  }

  /** Nobody else counts for this model, and its counts are used: from now on it is learnt. */
  want(model: string): void {
    if (model.length <= longestName && !this.#wanted.has(model)) this.#wanted.set(model, Number.NEGATIVE_INFINITY);
  }

  /**
   * @param model The upstream's id; its ratio is used if something is known.
   * @param whole As {@link Prompt.whole}.
   * @throws Error if the tokenizer cannot be run.
   */
  async count(conversation: Conversation, model?: string, whole?: Prompt["whole"]): Promise<TokenCount> {
    return this.#countOf(await countLocally(promptPartsOf(conversation, whole), this.#options.tokenizer), model);
  }

  /**
   * Estimates by a prompt's length, after the request was sent: it needs no vocabulary and keeps nothing of the prompt.
   * @returns Reads what is known by now; undefined for a prompt that cannot be decoded.
   */
  beginEstimate(prompt: Prompt, model: string): () => number | undefined {
    let tokens: number | undefined;
    void partsAfterSending(prompt).then((parts) => {
      if (parts) tokens = this.#countOf({ tokens: parts.bytes / averageBytes, fixed: parts.fixed }, model).tokens;
    });
    return () => tokens;
  }

  /**
   * Counts a prompt to learn from it, if its model's counts are wanted and there was no other one a moment ago. It keeps nothing
   * of the prompt.
   * @param bytes The length of the request's body.
   * @returns Learns from the input tokens that the upstream has reported. Resolves to whether anything was learnt.
   */
  beginLesson(model: string, prompt: Prompt, bytes: number): RatioLesson | undefined {
    const now = this.#options.monotonic();
    const due = this.#wanted.get(model) ?? Number.POSITIVE_INFINITY;
    if (now < due || bytes < smallestPrompt * bytesPerToken) return undefined;
    const isKnown = (this.#ratios.get(model)?.requests ?? 0) >= enoughRequests;
    this.#wanted.set(model, now + (isKnown ? learnEvery.later : learnEvery.first));
    return this.#lessonOf(model, this.#countToLearn(prompt));
  }

  #lessonOf(model: string, counted: Promise<CountedPrompt | undefined>): RatioLesson {
    return async ({ input }) => this.#learn(model, await counted, input);
  }

  async #countToLearn(prompt: Prompt): Promise<CountedPrompt | undefined> {
    const parts = await partsAfterSending(prompt);
    if (parts === undefined || parts.bytes > largestLesson) return undefined;
    try {
      return { ...(await countLocally(parts, this.#options.tokenizer)), media: parts.media };
    } catch (thrown) {
      this.#options.logger.debug("A prompt was not counted to learn from it; another one will teach as much.", thrown);
      return undefined;
    }
  }

  async #learn(model: string, local: CountedPrompt | undefined, reported: number | undefined): Promise<boolean> {
    const { config, history, logger } = this.#options;
    if (reported === undefined || !Number.isFinite(reported) || reported < smallestPrompt) return false;
    if (local === undefined || local.media > reported * maxMediaShare) return false;
    const before = this.#ratios.get(model) ?? { ratio: bounded(config().tokenEstimateMultiplier), requests: 0 };
    const learnt = learnRatio(before, local, reported);
    if (!learnt) return false;
    this.#ratios.set(model, learnt);
    try {
      await history.keepTokenRatio({ model, ...learnt });
    } catch (thrown) {
      logger.debug("How a model counts tokens could not be kept; it is tried again with its next request.", thrown);
    }
    return true;
  }

  /** What was learnt of a model. */
  ratioOf(model: string): TokenRatio | undefined {
    return this.#ratios.get(model);
  }

  #countOf({ tokens, fixed }: LocalCount, model: string | undefined): TokenCount {
    const learnt = model === undefined ? undefined : this.#ratios.get(model);
    const ratio = learnt ? learnt.ratio * (1 + margin) : this.#options.config().tokenEstimateMultiplier;
    const certain = learnt && learnt.requests >= enoughRequests ? learnt.ratio : 1;
    return { tokens: Math.ceil(tokens * ratio + fixed), atLeast: tokens * certain * certainShare };
  }
}

/** The request is sent first. */
async function partsAfterSending(prompt: Prompt): Promise<PromptParts | undefined> {
  await setImmediate();
  const decoded = prompt.conversation();
  return decoded && promptPartsOf(decoded, prompt.whole);
}

/** Bytes, roughly, that are read and sent to the worker at a time, so that streams go on in between. */
const mostAtOnce = 250_000;

async function countLocally({ texts, fixed, whole }: PromptParts, tokenizer: Tokenizer): Promise<LocalCount> {
  let tokens = 0;
  let next = 0;
  while (next < texts.length) {
    const some: string[] = [];
    for (let bytes = 0; next < texts.length && bytes < mostAtOnce; next++) {
      const text: LongText = texts[next]!;
      some.push(whole(text));
      bytes += bytesOf(text);
    }
    tokens += await tokenizer.count(some);
  }
  return { tokens, fixed };
}
