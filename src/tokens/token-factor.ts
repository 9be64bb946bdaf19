/**
 * How many tokens a model's own tokenizer makes of one token of the local vocabulary: one factor for texts, one for the
 * definitions of tools, which upstreams rewrite before a model reads them. Both are learnt from what the upstream reports,
 * by recursive least squares that forget old exchanges.
 */

/** A prompt in tokens of the local vocabulary. */
export interface LocalCount {
  texts: number;
  tools: number;
  /** What no vocabulary counts: images, documents and the framing of turns. The factors do not apply to it. */
  fixed: number;
}

export interface TokenFactor {
  texts: number;
  tools: number;
  /** The uncertainty of both factors: the variance of `texts`, the covariance, and the variance of `tools`. */
  variance: [number, number, number];
  exchanges: number;
  /** The usual relative distance of a prediction from what the upstream then reported. */
  error: number;
  updatedAtMs: number;
}

/** After so many exchanges a factor is used. */
export const enoughExchanges = 20;

/** What a hostile or broken upstream cannot move a factor beyond. */
export const factorBounds = { texts: [0.5, 2.5], tools: [0.25, 2.5] } as const;

/** No tokenizer differs from another by more than this: such a report is ignored. */
const plausible = 4;
/** The most that one exchange can be off its prediction and still be followed in full. */
const maxStep = 0.15;
/** Relative variance of a single report around the best factors. */
const noise = 0.03 ** 2;
/** Variance of a factor of which nothing is known. */
const unknown = 0.3 ** 2;
/** The weight that the earlier exchanges keep with each new one: about the last 25 count. */
const memory = 0.96;
/** The first exchanges correct the estimate's factor; their distance says nothing about the learnt one. */
const firstExchanges = 4;
const firstError = 0.05;
/** How many usual errors a prediction can be off. */
const certainErrors = 3;
/** No count is surer than this. */
const leastError = 0.02;
/** The least and the most by which an answer errs high. */
const margins = [0.03, 0.06] as const;

/** @param multiplier The factor of an estimate, with which learning starts. */
export const newFactor = (multiplier: number): TokenFactor => ({
  texts: clamp(multiplier, factorBounds.texts),
  tools: clamp(multiplier, factorBounds.tools),
  variance: [unknown, 0, unknown],
  exchanges: 0,
  error: firstError,
  updatedAtMs: 0,
});

/**
 * The factor after one more exchange.
 * @param reported The input tokens that the upstream reported, cached ones included.
 * @returns Undefined for a report that cannot be true.
 */
export function learnFactor(
  factor: TokenFactor,
  { texts, tools, fixed }: LocalCount,
  reported: number,
  nowMs: number,
): TokenFactor | undefined {
  const counted = reported - fixed;
  const ratio = counted / (texts + tools);
  if (!(ratio > 1 / plausible && ratio < plausible)) return undefined;
  const predicted = factor.texts * texts + factor.tools * tools;
  const distance = counted / predicted - 1;
  const [ht, hs] = [texts / predicted, tools / predicted];
  const [tt, ts, ss] = factor.variance.map((entry) => entry / memory) as TokenFactor["variance"];
  const [vt, vs] = [tt * ht + ts * hs, ts * ht + ss * hs];
  const total = ht * vt + hs * vs + noise;
  const step = clamp(distance, [-maxStep, maxStep]);
  return {
    texts: clamp(factor.texts + (vt / total) * step, factorBounds.texts),
    tools: clamp(factor.tools + (vs / total) * step, factorBounds.tools),
    variance: bounded([tt - (vt * vt) / total, ts - (vt * vs) / total, ss - (vs * vs) / total]),
    exchanges: factor.exchanges + 1,
    error: factor.exchanges < firstExchanges ? firstError : nextError(factor, distance),
    updatedAtMs: nowMs,
  };
}

/** The tokens that the model is expected to count. */
export const predict = ({ texts, tools }: Pick<TokenFactor, "texts" | "tools">, local: LocalCount): number =>
  texts * local.texts + tools * local.tools + local.fixed;

/** The share by which an answer errs high, so that a client compacts too early rather than too late. */
export const marginOf = ({ error }: TokenFactor): number => clamp(error, margins);

/** The fewest tokens that the model can be expected to count: three usual errors below the prediction. */
export const leastOf = (factor: TokenFactor, local: LocalCount): number =>
  predict(factor, { ...local, fixed: 0 }) * Math.max(0, 1 - certainErrors * Math.max(factor.error, leastError));

/** The same of a model of which nothing is known; some upstreams rewrite the definitions of tools to half their size. */
export const leastUnknown = ({ texts, tools }: LocalCount): number => 0.9 * texts + 0.5 * tools;

/** A root mean square in which the newest exchanges count most. */
function nextError({ error, exchanges }: TokenFactor, distance: number): number {
  const weight = Math.max(0.1, 1 / (exchanges - firstExchanges + 2));
  return Math.sqrt((1 - weight) * error ** 2 + weight * Math.min(0.5, Math.abs(distance)) ** 2);
}

/** Forgetting must not make a factor less certain than it was at first. The matrix stays positive. */
function bounded([tt, ts, ss]: TokenFactor["variance"]): TokenFactor["variance"] {
  const [t, s] = [clamp(tt, [1e-9, unknown]), clamp(ss, [1e-9, unknown])];
  const limit = Math.sqrt(t * s) * 0.999;
  return [t, clamp(ts, [-limit, limit]), s];
}

const clamp = (value: number, [least, most]: readonly [number, number]): number =>
  Math.min(most, Math.max(least, value));
