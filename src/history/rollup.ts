/**
 * Adds up a block of rows with neighbouring ids: one cell for the rows of the same hour, names, status and outcome. The
 * numbers lie in typed arrays, so that 200,000 rows are added up in milliseconds.
 */
import { type NameColumn, nameColumns } from "./filters";

/** How many ids a block spans. At most 65,536. */
export const blockRows = 1_024;
export const blockOf = (id: number) => Math.floor(id / blockRows);

/** The columns that are added up → how many parts of one are counted, so that sums are whole numbers and exact. */
export const measures = {
  input_tokens: 1,
  output_tokens: 1,
  cached_tokens: 1,
  cache_write_tokens: 1,
  reasoning_tokens: 1,
  nano_credits: 1,
  premium_units: 1e6,
} as const;
export type Measure = keyof typeof measures;
export const measureNames = Object.keys(measures) as Measure[];

/** The columns whose averages and percentiles are computed. */
export const durations = ["duration_ms", "first_byte_ms"] as const;

const head = ["id", "started_at_ms", "http_status", "error_type IS NOT NULL", "stream"];
/** What is read of a row to add it up, in this order. */
export const rolledColumns = [...head, ...nameColumns, ...measureNames, ...durations];
export type RolledRow = (string | number | null)[];

const firstName = head.length;
const firstNumber = firstName + nameColumns.length;
const scales = [...Object.values(measures), ...durations.map(() => 1)];
const inputPlace = firstNumber + measureNames.indexOf("input_tokens");
const cachedPlace = firstNumber + measureNames.indexOf("cached_tokens");

/** The columns of a cell's key in `keys`: start of the hour in quarters of an hour, `flagsOf`, and the id of each name. */
export const keyPlaces = {
  slot: 0,
  flags: 1,
  ...(Object.fromEntries(nameColumns.map((name, at) => [name, 2 + at])) as Record<NameColumn, number>),
};
export const keyWidth = 2 + nameColumns.length;
/** Of each cell in `counts`: its rows, then those with a known value of each measure and duration. */
export const countWidth = 1 + scales.length;
/** Of each cell in `sums`: each measure and duration, then these. */
export const sumPlaces = {
  cached: scales.length,
  /** The input of the rows where the cached part is known too. */
  cacheable: scales.length + 1,
  first: scales.length + 2,
  last: scales.length + 3,
};
export const sumWidth = scales.length + 4;

export interface RollupBlock {
  cells: number;
  /** When the first and the last row started, Unix ms. */
  firstMs: number;
  lastMs: number;
  /** Column after column. */
  keys: Int32Array;
  /** Cell after cell. */
  counts: Uint16Array;
  sums: Float64Array;
  /** Of each row, in the order of ids: its cell, and its id above the block's first. */
  rows: Uint16Array;
  /** Of each row: the bucket of each duration. */
  buckets: Uint8Array;
}

/** Changes when blocks are made in another way; those on disk are then made again. */
export const rollupLayout = JSON.stringify([blockRows, rolledColumns, scales, "buckets 1.07"]);

export const quarterMs = 15 * 60_000;
const quarterOf = (ms: number) => Math.floor(ms / quarterMs);

/** In which quarter of an hour UTC the hours of this machine's clock begin: some time zones differ by half an hour. */
export const hourPhase = () => (((-new Date().getTimezoneOffset() / 15) % 4) + 4) % 4;
/** The quarter in which the hour begins that the time lies in. Hours begin in each fourth quarter. */
export const slotsOfHours = (phase: number) => (ms: number) => {
  const quarter = quarterOf(ms) + phase;
  return quarter - (((quarter % 4) + 4) % 4) - phase;
};
/** The same for parts that belong to one hour in each time zone. */
export const slotsOfQuarters = quarterOf;

const flagsOf = (status: number, failed: number, stream: number) => status * 4 + failed * 2 + stream;
export const statusIn = (flags: number) => flags >> 2;
export const failedIn = (flags: number) => (flags & 2) !== 0;
export const streamIn = (flags: number) => (flags & 1) !== 0;

/** @param idOf A number for each name, above 0. @param slotOf One of the two above. */
export function rollUp(rows: RolledRow[], idOf: (name: string) => number, slotOf: (ms: number) => number): RollupBlock {
  const cellOf = new Map<string, number>();
  const keys: number[][] = [];
  const counts: number[] = [];
  const sums: number[] = [];
  const places = new Uint16Array(rows.length * 2);
  const buckets = new Uint8Array(rows.length * durations.length);
  const base = rows.length === 0 ? 0 : blockOf(rows[0]![0] as number) * blockRows;
  for (const [at, row] of rows.entries()) {
    const key = keyOf(row, idOf, slotOf);
    const text = key.join();
    let cell = cellOf.get(text);
    if (cell === undefined) {
      cell = keys.push(key) - 1;
      cellOf.set(text, cell);
      for (let place = 0; place < countWidth; place += 1) counts.push(0);
      for (let place = 0; place < sumWidth; place += 1) sums.push(0);
      sums[cell * sumWidth + sumPlaces.first] = Number.POSITIVE_INFINITY;
    }
    addRow(row, counts, cell * countWidth, sums, cell * sumWidth);
    places[at * 2] = cell;
    places[at * 2 + 1] = (row[0] as number) - base;
    for (let which = 0; which < durations.length; which += 1)
      buckets[at * durations.length + which] = bucketOf(
        row[firstNumber + measureNames.length + which] as number | null,
      );
  }
  const starts = rows.map((row) => row[1] as number);
  return {
    cells: keys.length,
    firstMs: starts.reduce((first, start) => Math.min(first, start), Number.POSITIVE_INFINITY),
    lastMs: starts.reduce((last, start) => Math.max(last, start), Number.NEGATIVE_INFINITY),
    keys: Int32Array.from(
      { length: keys.length * keyWidth },
      (_, at) => keys[at % keys.length]![Math.floor(at / keys.length)]!,
    ),
    counts: Uint16Array.from(counts),
    sums: Float64Array.from(sums),
    rows: places,
    buckets,
  };
}

function keyOf(row: RolledRow, idOf: (name: string) => number, slotOf: (ms: number) => number): number[] {
  const key = [slotOf(row[1] as number), flagsOf(row[2] as number, row[3] as number, row[4] as number)];
  for (let place = firstName; place < firstNumber; place += 1) {
    const name = row[place] as string | null;
    key.push(name === null ? 0 : idOf(name));
  }
  return key;
}

function addRow(row: RolledRow, counts: number[], count: number, sums: number[], sum: number): void {
  counts[count]! += 1;
  for (let at = 0; at < scales.length; at += 1) {
    const value = row[firstNumber + at] as number | null;
    if (value === null) continue;
    counts[count + 1 + at]! += 1;
    sums[sum + at]! += Math.round(value * scales[at]!);
  }
  const [input, cached] = [row[inputPlace], row[cachedPlace]];
  if (typeof input === "number" && typeof cached === "number") {
    sums[sum + sumPlaces.cached]! += cached;
    sums[sum + sumPlaces.cacheable]! += input;
  }
  const start = row[1] as number;
  sums[sum + sumPlaces.first] = Math.min(sums[sum + sumPlaces.first]!, start);
  sums[sum + sumPlaces.last] = Math.max(sums[sum + sumPlaces.last]!, start);
}

/** Buckets of durations: 0 for an unknown one, one for each ms below `bucketExact`, then each 7 % wider than the one before. */
export const bucketCount = 256;
export const bucketExact = 32;
/** Each further bucket is so much wider, as a logarithm. */
export const bucketGrowth = Math.log(1.07);

export function bucketOf(ms: number | null): number {
  if (ms === null) return 0;
  if (ms < bucketExact) return 1 + Math.max(0, Math.floor(ms));
  return Math.min(bucketCount - 1, 1 + bucketExact + Math.floor(Math.log(ms / bucketExact) / bucketGrowth));
}

/** The middle of a bucket, ms: at most 5 % from each of its values. */
export function bucketValue(bucket: number): number {
  if (bucket <= bucketExact) return bucket - 1;
  const start = (at: number) => bucketExact * Math.exp((at - 1 - bucketExact) * bucketGrowth);
  return Math.round((Math.ceil(start(bucket)) + Math.ceil(start(bucket + 1)) - 1) / 2);
}
