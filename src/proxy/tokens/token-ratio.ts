/**
 * How many tokens a model's own tokenizer makes of one token of the local vocabulary, the definitions of tools included, which
 * some upstreams rewrite. Learnt from what the upstream reports, a little from each request.
 */

/** A prompt in tokens of the local vocabulary. */
export interface LocalCount {
  tokens: number;
  /** What no vocabulary counts: images, documents and the framing of turns. The ratio does not apply to it. */
  fixed: number;
}

export interface TokenRatio {
  ratio: number;
  /** The requests that it was learnt from. */
  requests: number;
}

/** What a hostile or broken upstream cannot move a ratio beyond. */
export const ratioBounds = [0.5, 2.5] as const;

/** No tokenizer differs from another by more than this: such a report is ignored. */
const plausible = 4;
/** The most that one request can be off and still be followed in full. */
const maxStep = 0.2;
/** What a request counts in the end; the first ones count more. With `maxStep`, one odd reply moves a settled ratio by 2 %. */
const leastWeight = 0.1;

/**
 * The ratio after one more request.
 * @param reported The input tokens that the upstream reported, cached ones included.
 * @returns Undefined for a report that cannot be true.
 */
export function learnRatio(
  { ratio, requests }: TokenRatio,
  { tokens, fixed }: LocalCount,
  reported: number,
): TokenRatio | undefined {
  const found = (reported - fixed) / tokens;
  if (!(found > 1 / plausible && found < plausible)) return undefined;
  const step = Math.min(maxStep, Math.max(-maxStep, found / ratio - 1));
  const weight = Math.max(leastWeight, 1 / (requests + 2));
  return { ratio: bounded(ratio * (1 + weight * step)), requests: requests + 1 };
}

export const bounded = (ratio: number): number => Math.min(ratioBounds[1], Math.max(ratioBounds[0], ratio));
