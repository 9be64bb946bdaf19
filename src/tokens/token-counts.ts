/**
 * The input tokens of a conversation: an estimate by the local vocabulary, until enough of a model's exchanges have shown
 * how its own tokenizer counts. All counting is done by the tokenizer's worker.
 */

import type { Config } from "../config/schema";
import type { Conversation } from "../dialects/hub/conversation";
import type { Logger } from "../logger";
import type { ReadText } from "../net/json/json-skeleton";
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
import { mergeFactors, saveFactors, saveFactorsNow, type TokenFactors } from "./token-factor-file";
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

export interface TokenCounts {
  /**
   * @param model The upstream's id; its factor is used if enough is known.
   * @param whole As {@link Prompt.whole}.
   * @throws Error if the tokenizer cannot be run.
   */
  count(conversation: Conversation, model?: string, whole?: Prompt["whole"]): Promise<TokenCount>;
  /**
   * Starts a rough count that nothing waits for.
   * @returns Reads what is known by now; undefined for a prompt that cannot be decoded.
   */
  beginCount(prompt: Prompt, model: string): () => number | undefined;
  /** An estimate by the prompt's length alone; undefined if it cannot be decoded. */
  roughly(prompt: Prompt, model: string): number | undefined;
  /**
   * Learns from one exchange, unless there was another one a moment ago.
   * @param reported The input tokens that the upstream reported, if it did.
   * @returns Resolves when that is done; whether anything was learnt.
   */
  learn(model: string, prompt: Prompt, reported: number | undefined): Promise<boolean>;
  /** What was learnt of a model, and whether it is used already. */
  factorOf(model: string): (TokenFactor & { used: boolean }) | undefined;
  close(): void;
}

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
/** Characters that wait for the worker, above which no rough count is begun: it would come too late. */
const maxBacklog = 2_000_000;

/** Milliseconds. */
const saveAfter = 2_000;
const saveEvery = 60_000;

export function openTokenCounts(options: TokenCountsOptions): TokenCounts {
  const { config, tokenizer, path, now, monotonic } = options;
  const factors: TokenFactors = new Map();
  mergeFactors(factors, path);
  const file = openFile(factors, options);
  let isLearning = false;
  let nextAt = Number.NEGATIVE_INFINITY;
  /** When a model's factor was last refreshed. */
  const refreshedAt = new Map<string, number>();

  const used = (model: string | undefined): TokenFactor | undefined => {
    const factor = model === undefined ? undefined : factors.get(model);
    return config().tokenCalibration && factor && factor.exchanges >= enoughExchanges ? factor : undefined;
  };

  const answer = (local: LocalCount, factor: TokenFactor | undefined): TokenCount => {
    const { tokenEstimateMultiplier: multiplier } = config();
    const { texts, tools, fixed } = local;
    if (!factor) {
      const tokens = Math.ceil((texts + tools) * multiplier + fixed);
      return { tokens, how: "estimate", atLeast: leastUnknown(local) };
    }
    const ownCount = predict(factor, { texts, tools, fixed: 0 });
    const tokens = Math.ceil(ownCount * (1 + marginOf(factor)) + fixed);
    return { tokens, how: "calibrated", atLeast: leastOf(factor, local) };
  };

  const mayLearn = (model: string) => {
    const at = monotonic();
    if (isLearning || at < nextAt) return false;
    const isKnown = (factors.get(model)?.exchanges ?? 0) >= enoughExchanges;
    return !isKnown || at >= (refreshedAt.get(model) ?? Number.NEGATIVE_INFINITY) + refreshEvery;
  };

  return {
    async count(conversation, model, whole) {
      return answer(await countLocally(promptPartsOf(conversation, whole), tokenizer), used(model));
    },
    beginCount(prompt, model) {
      let tokens: number | undefined;
      // The request is sent first.
      setImmediate(() => {
        const parts = partsOf(prompt);
        if (parts === undefined) return;
        // The vocabulary may still be loading when the reply begins, or the worker be busy.
        tokens = answer(byLength(parts), used(model)).tokens;
        if (parts.length <= smallLength || tokenizer.backlog > maxBacklog) return;
        countRoughly(parts, tokenizer).then(
          (local) => {
            tokens = answer(local, used(model)).tokens;
          },
          () => {}, // Without a tokenizer the estimate by length is all there is.
        );
      });
      return () => tokens;
    },
    roughly(prompt, model) {
      const parts = partsOf(prompt);
      return parts && answer(byLength(parts), used(model)).tokens;
    },
    async learn(model, prompt, reported) {
      if (reported === undefined || !Number.isFinite(reported) || reported < smallestPrompt) return false;
      if (!config().tokenCalibration || !mayLearn(model)) return false;
      const begunAt = monotonic();
      nextAt = begunAt + learnEvery;
      const parts = partsOf(prompt);
      if (parts === undefined || parts.length > largestLength || parts.media > reported * maxMediaShare) return false;
      isLearning = true;
      try {
        const local = await countLocally(parts, tokenizer);
        const before = factors.get(model) ?? newFactor(config().tokenEstimateMultiplier);
        const factor = learnFactor(before, local, reported, Math.round(now()));
        if (!factor) return false;
        factors.set(model, factor);
        refreshedAt.set(model, monotonic());
        file.changed();
        return true;
      } catch {
        return false; // The tokenizer was closed, or could not be run: another exchange will teach as much.
      } finally {
        isLearning = false;
        nextAt = Math.max(nextAt, monotonic() + restShare * (monotonic() - begunAt));
      }
    },
    factorOf(model) {
      const factor = factors.get(model);
      return factor && { ...factor, used: used(model) !== undefined };
    },
    close: () => file.close(),
  };
}

function partsOf({ conversation, whole }: Prompt): PromptParts | undefined {
  const decoded = conversation();
  return decoded && promptPartsOf(decoded, whole);
}

async function countLocally({ texts, tools, fixed }: PromptParts, tokenizer: Tokenizer): Promise<LocalCount> {
  const [ofTexts, ofTools] = await Promise.all([tokenizer.count(texts), tools.length > 0 ? tokenizer.count(tools) : 0]);
  return { texts: ofTexts, tools: ofTools, fixed };
}

function byLength({ texts, tools, fixed }: PromptParts): LocalCount {
  const tokens = (list: string[]) => list.reduce((sum, text) => sum + text.length, 0) / charactersPerToken;
  return { texts: tokens(texts), tools: tokens(tools), fixed };
}

/** Of a large prompt, the beginning of each text stands for all of it. */
async function countRoughly(parts: PromptParts, tokenizer: Tokenizer): Promise<LocalCount> {
  const { texts, tools, fixed, length } = parts;
  const share = Math.min(1, roughLength / length);
  const cut = (text: string) => (share === 1 ? text : text.slice(0, Math.ceil(text.length * share)));
  const part = await countLocally({ ...parts, texts: texts.map(cut), tools: tools.map(cut) }, tokenizer);
  return { texts: part.texts / share, tools: part.tools / share, fixed };
}

/** Writes the factors a moment after a change, and then at most once a minute. */
function openFile(factors: TokenFactors, { path, logger, monotonic }: TokenCountsOptions) {
  let timer: Timer | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let isChanged = false;
  let hasFailed = false;
  let isClosed = false;

  const failed = (thrown: unknown) => {
    if (!hasFailed)
      logger.warn("The learnt token factors cannot be saved; they are learnt again after a restart.", thrown);
    hasFailed = true;
  };
  const save = async () => {
    isChanged = false;
    writtenAt = monotonic();
    mergeFactors(factors, path);
    await saveFactors(path, factors).catch(failed);
    timer = undefined;
    if (isChanged && !isClosed) schedule();
  };
  const schedule = () => {
    timer ??= setTimeout(() => void save(), Math.max(saveAfter, writtenAt + saveEvery - monotonic()));
    timer.unref();
  };

  return {
    changed() {
      isChanged = true;
      if (!isClosed) schedule();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      if (!isChanged) return;
      isChanged = false;
      try {
        mergeFactors(factors, path);
        saveFactorsNow(path, factors);
      } catch (thrown) {
        failed(thrown);
      }
    },
  };
}
