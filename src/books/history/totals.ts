/** Totals of many requests. An unknown number is null, and is counted. */
import { type CacheableTokens, type Costs, type CostUnit, cachedShareOf, costUnitNames } from "../../lib/money";
import { bucketCount, bucketValue, countMarks } from "./durations";

/** The columns that are added up, beside the cost. */
export const measureNames = [
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cache_lost_cost",
] as const;
export type Measure = (typeof measureNames)[number];

/** The columns whose averages and percentiles are computed. */
export const durations = ["duration_ms", "first_byte_ms"] as const;
type Duration = (typeof durations)[number];

/** Sums of the known values; null when there are requests and no value is known. */
export interface Totals extends Record<Measure, number | null>, Costs {
  request_count: number;
  /** Requests with an `error_type`, including those whose client disconnected. */
  error_count: number;
  /** 0 … 1; null without requests. */
  success_rate: number | null;
  /** The number of requests without a known value. */
  unknown: Record<Measure | "cost", number>;
  /** Of the requests where both are known. */
  cacheable: CacheableTokens;
  /** The cached part of that input, 0 … 1; null where there is none. */
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

/** What requests add up to in SQL; the names are columns of the rollup. */
export type Sums = Record<(typeof counted)[number] | "first_at_ms" | "last_at_ms", number> &
  Record<`${Measure | Duration | CostUnit}_${"count" | "sum"}`, number> &
  Record<`${Duration}_marks`, string | null>;

/** Sums of several groups of requests. */
export class Adder {
  readonly #sums = new Map<string, number>();
  readonly #buckets = new Map(durations.map((name) => [name, new Uint32Array(bucketCount)] as const));
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  add(sums: Sums): void {
    for (const name of added) this.#sums.set(name, this.#sum(name) + sums[name]);
    for (const name of durations) countMarks(sums[`${name}_marks`] ?? "", this.#buckets.get(name)!);
    this.#first = Math.min(this.#first, sums.first_at_ms);
    this.#last = Math.max(this.#last, sums.last_at_ms);
  }

  totals(): Totals {
    const [requests, errors] = [this.#sum("requests"), this.#sum("errors")];
    const cacheable = { input_tokens: this.#sum("both_input"), cached_tokens: this.#sum("both_cached") };
    const known = {} as Record<Measure, number | null>;
    const unknown = {} as Totals["unknown"];
    for (const name of measureNames) {
      const count = this.#sum(`${name}_count`);
      known[name] = count === 0 && requests > 0 ? null : this.#sum(`${name}_sum`);
      unknown[name] = requests - count;
    }
    const { unknown_cost_count, ...costs } = costsIn((name) => this.#sum(name));
    unknown.cost = unknown_cost_count;
    const [duration, firstByte] = [this.#spread("duration_ms"), this.#spread("first_byte_ms")];
    return {
      request_count: requests,
      error_count: errors,
      success_rate: requests > 0 ? (requests - errors) / requests : null,
      ...known,
      ...costs,
      unknown,
      cacheable,
      cached_share: cachedShareOf(cacheable),
      avg_duration_ms: duration.average,
      p50_duration_ms: duration.p50,
      p95_duration_ms: duration.p95,
      avg_first_byte_ms: firstByte.average,
      p50_first_byte_ms: firstByte.p50,
      p95_first_byte_ms: firstByte.p95,
      first_at_ms: requests > 0 ? this.#first : null,
      last_at_ms: requests > 0 ? this.#last : null,
    };
  }

  #sum(name: string): number {
    return this.#sums.get(name) ?? 0;
  }

  #spread(name: Duration) {
    const known = this.#sum(`${name}_count`);
    if (known === 0) return { average: null, p50: null, p95: null };
    const counts = this.#buckets.get(name)!;
    const at = (share: number) => {
      let left = Math.ceil(share * known);
      let bucket = 0;
      while (left > 0) left -= counts[++bucket]!;
      return bucketValue(bucket);
    };
    return { average: Math.round(this.#sum(`${name}_sum`) / known), p50: at(0.5), p95: at(0.95) };
  }
}

const counted = ["requests", "errors", "open_cost", "both_cached", "both_input"] as const;
const added = [
  ...counted,
  ...[...measureNames, ...durations, ...costUnitNames].flatMap((name) => [`${name}_count`, `${name}_sum`] as const),
] as const;

/** The sums that a cost is made of. */
type CostSum = "requests" | "open_cost" | `${CostUnit}_${"count" | "sum"}`;

/** What requests cost, by their sums; and of how many of them the cost is unknown. */
export function costsIn(sum: (name: CostSum) => number): Costs & { unknown_cost_count: number } {
  const known = costUnitNames.filter((unit) => sum(`${unit}_count`) > 0);
  const unknown_cost_count = known.reduce((left, unit) => left - sum(`${unit}_count`), sum("requests"));
  return {
    cost: Object.fromEntries(known.map((unit) => [unit, sum(`${unit}_sum`)])),
    cost_at_least: unknown_cost_count + sum("open_cost") > 0,
    unknown_cost_count,
  };
}

export const noTotals = (): Totals => new Adder().totals();
