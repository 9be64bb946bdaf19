/** Adds up requests. An unknown number is null, and is counted. */
import { type ColumnBlock, durations, measureColumns } from "./column-cache";

type Measure = (typeof measureColumns)[number];

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
  /** The median. */
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
  add(block: ColumnBlock, rows: number[]): void;
  /** The number of requests so far. */
  readonly count: number;
  totals(): Totals;
}

export function openAggregate(): Aggregate {
  const sums = measureColumns.map(() => ({ sum: 0, known: 0 }));
  const spreads = durations.map(() => ({ sum: 0, values: [] as number[] }));
  let count = 0;
  let errors = 0;
  let cacheable = 0;
  let cached = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;

  return {
    get count() {
      return count;
    },
    // One column after the other: small loops over typed arrays are fast.
    add({ numbers, started, failed }, rows) {
      count += rows.length;
      for (const row of rows) {
        errors += failed[row]!;
        first = Math.min(first, started[row]!);
        last = Math.max(last, started[row]!);
      }
      for (const [place, name] of measureColumns.entries()) addKnown(sums[place]!, numbers[name], rows);
      for (const [place, name] of durations.entries()) keepKnown(spreads[place]!, numbers[name], rows);
      const { input_tokens, cached_tokens } = numbers;
      for (const row of rows) {
        if (Number.isNaN(input_tokens[row]! + cached_tokens[row]!)) continue;
        cacheable += input_tokens[row]!;
        cached += cached_tokens[row]!;
      }
    },
    totals() {
      const perMeasure = <T>(read: (sum: Sum) => T) =>
        Object.fromEntries(measureColumns.map((name, place) => [name, read(sums[place]!)])) as Record<Measure, T>;
      const [duration, firstByte] = spreads.map(percentilesOf);
      return {
        request_count: count,
        error_count: errors,
        success_rate: count > 0 ? (count - errors) / count : null,
        ...perMeasure(({ sum, known }) => (known === 0 && count > 0 ? null : sum)),
        unknown: perMeasure(({ known }) => count - known),
        cached_share: cacheable > 0 ? cached / cacheable : null,
        avg_duration_ms: duration!.average,
        p50_duration_ms: duration!.p50,
        p95_duration_ms: duration!.p95,
        avg_first_byte_ms: firstByte!.average,
        p50_first_byte_ms: firstByte!.p50,
        p95_first_byte_ms: firstByte!.p95,
        first_at_ms: count > 0 ? first : null,
        last_at_ms: count > 0 ? last : null,
      };
    },
  };
}

interface Sum {
  sum: number;
  known: number;
}

function addKnown(into: Sum, column: Float64Array, rows: number[]): void {
  let { sum, known } = into;
  for (const row of rows) {
    const value = column[row]!;
    if (Number.isNaN(value)) continue;
    sum += value;
    known += 1;
  }
  into.sum = sum;
  into.known = known;
}

interface Spread {
  sum: number;
  values: number[];
}

function keepKnown(into: Spread, column: Float64Array, rows: number[]): void {
  const { values } = into;
  let { sum } = into;
  for (const row of rows) {
    const value = column[row]!;
    if (Number.isNaN(value)) continue;
    sum += value;
    values.push(value);
  }
  into.sum = sum;
}

function percentilesOf({ sum, values }: Spread): { average: number | null; p50: number | null; p95: number | null } {
  if (values.length === 0) return { average: null, p50: null, p95: null };
  const copy = new Float64Array(values);
  const at = (share: number) => nthSmallest(copy, Math.ceil(share * copy.length) - 1);
  return { average: Math.round(sum / copy.length), p50: at(0.5), p95: at(0.95) };
}

/** Quickselect: partitions the values around the wanted index without sorting the rest. */
function nthSmallest(values: Float64Array, wanted: number): number {
  let from = 0;
  let to = values.length - 1;
  while (from < to) {
    const pivot = values[(from + to) >> 1]!;
    let low = from;
    let high = to;
    while (low <= high) {
      while (values[low]! < pivot) low += 1;
      while (values[high]! > pivot) high -= 1;
      if (low > high) break;
      const value = values[low]!;
      values[low++] = values[high]!;
      values[high--] = value;
    }
    if (wanted <= high) to = high;
    else if (wanted >= low) from = low;
    else break;
  }
  return values[wanted]!;
}
