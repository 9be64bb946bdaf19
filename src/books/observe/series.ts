/** Counters and histograms: a number, or a distribution, for each set of label values. Adding to one costs a look-up. */

/** One set of label values, in the order of the family's label names. */
type LabelValues = readonly string[];

/** A value as it is reported, with the names of its labels. */
export interface Point<Value> {
  labels: Readonly<Record<string, string>>;
  value: Value;
}

export interface SeriesFamily<Value> {
  readonly labels: readonly string[];
  /** All series, each with its label values. */
  all(): Iterable<readonly [LabelValues, Value]>;
}

/** What a counter has counted for one set of label values. */
export interface Total {
  total: number;
}

export interface CounterFamily extends SeriesFamily<number> {
  /** The series of these values, for those who add to it again and again: it is the same as long as the family lives. */
  find(values: LabelValues): Total;
  add(values: LabelValues, amount: number): void;
}

export interface Distribution {
  /** How many values lie in each bucket; the last one has those above all bounds. */
  readonly counts: number[];
  count: number;
  sum: number;
}

export interface HistogramFamily extends SeriesFamily<Distribution> {
  /** As {@link CounterFamily.find}. */
  find(values: LabelValues): Distribution;
  /** The upper bounds of the buckets, inclusive and ascending. */
  readonly bounds: readonly number[];
  observe(values: LabelValues, value: number): void;
}

/**
 * Beyond this number, further sets of a family share series: clients choose some of the values. At first those that differ by the
 * person only, and beyond twice this number all of them.
 */
export const maxSeries = 1_000;

/** Labels that have a value for each person of a team, or several. */
const personal = new Set(["account", "key"]);

/** Stands for the values of labels that were given up. */
const overflow = "other";

export function openCounter(labels: readonly string[]): CounterFamily {
  const series = openSeries(labels, (): Total => ({ total: 0 }));
  return {
    labels,
    *all() {
      for (const [values, { total }] of series.all()) yield [values, total];
    },
    find: series.find,
    add(values, amount) {
      series.find(values).total += amount;
    },
  };
}

export function openHistogram(labels: readonly string[], bounds: readonly number[]): HistogramFamily {
  const series = openSeries(
    labels,
    (): Distribution => ({ counts: Array(bounds.length + 1).fill(0), count: 0, sum: 0 }),
  );
  return {
    labels,
    bounds,
    all: series.all,
    find: series.find,
    observe: (values, value) => addTo(series.find(values), bounds, value),
  };
}

export function addTo(distribution: Distribution, bounds: readonly number[], value: number): void {
  let bucket = 0;
  while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
  distribution.counts[bucket]!++;
  distribution.count++;
  distribution.sum += value;
}

function openSeries<Value>(labels: readonly string[], make: () => Value) {
  const known = new Map<string, readonly [LabelValues, Value]>();
  const shared = labels.map(() => overflow);
  const isPersonal = labels.map((label) => personal.has(label));
  const limit = isPersonal.includes(true) ? 2 * maxSeries : maxSeries;
  const find = (values: LabelValues): Value => {
    const key = values.join("\0");
    const found = known.get(key);
    if (found) return found[1];
    const isGeneral = values.every((value, at) => !isPersonal[at] || value === overflow);
    if (known.size >= limit && values !== shared) return find(shared);
    if (known.size >= maxSeries && !isGeneral)
      return find(values.map((value, at) => (isPersonal[at] ? overflow : value)));
    const added = [values, make()] as const;
    known.set(key, added);
    return added[1];
  };
  return { all: () => known.values(), find };
}
