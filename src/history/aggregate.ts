/** Adds up cells of the rollup. An unknown number is null, and is counted. */
import {
  bucketCount,
  bucketValue,
  countWidth,
  durations,
  failedIn,
  keyPlaces,
  type Measure,
  measureNames,
  measures,
  type RollupBlock,
  sumPlaces,
  sumWidth,
} from "./rollup";

/** Sums of the known values; null when there are requests and no value is known. */
export interface Totals extends Record<Measure, number | null> {
  request_count: number;
  /** Requests with an `error_type`, including those whose client disconnected. */
  error_count: number;
  /** 0 … 1; null without requests. */
  success_rate: number | null;
  /** The number of requests without a known value. */
  unknown: Record<Measure, number>;
  /** The cached part of the input, 0 … 1, of the requests where both are known; null where there are none. */
  cached_share: number | null;
  avg_duration_ms: number | null;
  /** The median. Percentiles are at most 5 % off. */
  p50_duration_ms: number | null;
  p95_duration_ms: number | null;
  avg_first_byte_ms: number | null;
  p50_first_byte_ms: number | null;
  p95_first_byte_ms: number | null;
  /** When the first and the last request started, Unix ms. */
  first_at_ms: number | null;
  last_at_ms: number | null;
}

export interface Aggregate {
  errors: number;
  counts: Float64Array;
  sums: Float64Array;
  /** Of each duration: how many requests are in each bucket. */
  buckets: Uint32Array;
}

export function openAggregate(): Aggregate {
  const sums = new Float64Array(sumWidth);
  sums[sumPlaces.first] = Number.POSITIVE_INFINITY;
  sums[sumPlaces.last] = Number.NEGATIVE_INFINITY;
  return {
    errors: 0,
    counts: new Float64Array(countWidth),
    sums,
    buckets: new Uint32Array(bucketCount * durations.length),
  };
}

/** @param into Where each cell is added; cells without an aggregate are not. */
export function addCells(into: (Aggregate | undefined)[], block: RollupBlock): void {
  for (let cell = 0; cell < block.cells; cell += 1) {
    const aggregate = into[cell];
    if (aggregate) addCell(aggregate, block, cell);
  }
  const { rows, buckets } = block;
  const width = durations.length;
  for (let row = 0; row < rows.length / 2; row += 1) {
    const counted = into[rows[row * 2]!]?.buckets;
    if (!counted) continue;
    for (let which = 0; which < width; which += 1) counted[which * bucketCount + buckets[row * width + which]!]! += 1;
  }
}

function addCell(into: Aggregate, { cells, keys, counts, sums }: RollupBlock, cell: number): void {
  const [count, sum] = [cell * countWidth, cell * sumWidth];
  if (failedIn(keys[keyPlaces.flags * cells + cell]!)) into.errors += counts[count]!;
  for (let place = 0; place < countWidth; place += 1) into.counts[place]! += counts[count + place]!;
  for (let place = 0; place < sumPlaces.first; place += 1) into.sums[place]! += sums[sum + place]!;
  widen(into.sums, sums[sum + sumPlaces.first]!, sums[sum + sumPlaces.last]!);
}

export function addAggregate(into: Aggregate, { errors, counts, sums, buckets }: Aggregate): void {
  into.errors += errors;
  for (let place = 0; place < countWidth; place += 1) into.counts[place]! += counts[place]!;
  for (let place = 0; place < sumPlaces.first; place += 1) into.sums[place]! += sums[place]!;
  widen(into.sums, sums[sumPlaces.first]!, sums[sumPlaces.last]!);
  for (let bucket = 0; bucket < buckets.length; bucket += 1) into.buckets[bucket]! += buckets[bucket]!;
}

function widen(sums: Float64Array, first: number, last: number): void {
  if (first < sums[sumPlaces.first]!) sums[sumPlaces.first] = first;
  if (last > sums[sumPlaces.last]!) sums[sumPlaces.last] = last;
}

export function totalsOf({ errors, counts, sums, buckets }: Aggregate): Totals {
  const count = counts[0]!;
  const known = {} as Record<Measure, number | null>;
  const unknown = {} as Record<Measure, number>;
  for (const [at, name] of measureNames.entries()) {
    const values = counts[1 + at]!;
    known[name] = values === 0 && count > 0 ? null : sums[at]! / measures[name];
    unknown[name] = count - values;
  }
  const [duration, firstByte] = durations.map((_, which) => {
    const place = measureNames.length + which;
    return spreadOf(buckets, which * bucketCount, counts[1 + place]!, sums[place]!);
  });
  return {
    request_count: count,
    error_count: errors,
    success_rate: count > 0 ? (count - errors) / count : null,
    ...known,
    unknown,
    cached_share: sums[sumPlaces.cacheable]! > 0 ? sums[sumPlaces.cached]! / sums[sumPlaces.cacheable]! : null,
    avg_duration_ms: duration!.average,
    p50_duration_ms: duration!.p50,
    p95_duration_ms: duration!.p95,
    avg_first_byte_ms: firstByte!.average,
    p50_first_byte_ms: firstByte!.p50,
    p95_first_byte_ms: firstByte!.p95,
    first_at_ms: count > 0 ? sums[sumPlaces.first]! : null,
    last_at_ms: count > 0 ? sums[sumPlaces.last]! : null,
  };
}

/** @param start Where the duration's buckets begin. */
function spreadOf(buckets: Uint32Array, start: number, known: number, sum: number) {
  if (known === 0) return { average: null, p50: null, p95: null };
  const at = (share: number) => {
    let left = Math.ceil(share * known);
    let bucket = 0;
    while (left > 0) left -= buckets[start + ++bucket]!;
    return bucketValue(bucket);
  };
  return { average: Math.round(sum / known), p50: at(0.5), p95: at(0.95) };
}
