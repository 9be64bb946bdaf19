/** Durations are counted in buckets, each at most 7 % wide, from which percentiles are read. */

/** 1 for less than a millisecond, one for each ms below `exactBelow`, then each 7 % wider than the one before. */
export const bucketCount = 256;
export const exactBelow = 32;
/** Each further bucket is so much wider, as a logarithm. */
export const bucketGrowth = Math.log(1.07);

const startOf = (bucket: number) => exactBelow * Math.exp((bucket - 1 - exactBelow) * bucketGrowth);

/** The middle of a bucket, ms: at most 5 % from each of its values. */
export function bucketValue(bucket: number): number {
  if (bucket <= exactBelow) return bucket - 1;
  return Math.round((Math.ceil(startOf(bucket)) + Math.ceil(startOf(bucket + 1)) - 1) / 2);
}

/** The shortest duration of each bucket, in whole ms. Anything shorter than the second is in the first. */
export const bucketStarts: () => number[] = () =>
  Array.from({ length: bucketCount - 1 }, (_, at) => (at <= exactBelow ? at : Math.ceil(startOf(at + 1))));

/**
 * The sums of many durations are kept as a text with one character for each: texts are joined by SQL itself, and count
 * as quickly as arrays. A character's code is that of its bucket and this, so that it is printable.
 */
export const firstMark = 32;

/** Adds the durations in a text to `counts`, which has a place for each bucket. */
export function countMarks(marks: string, counts: Uint32Array): void {
  for (let at = 0; at < marks.length; at += 1) counts[marks.charCodeAt(at) - firstMark]! += 1;
}
