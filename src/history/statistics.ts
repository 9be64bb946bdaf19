/** Totals of many requests, and of groups of them. An unknown number is null, and is counted. */

import { clock, isoDay, utcOffset } from "../format";
import { type Aggregate, openAggregate, type Totals } from "./aggregate";
import type { ColumnBlock, ColumnCache } from "./column-cache";
import { type Filters, type NameColumn, nameColumns } from "./page";

/** What requests can be grouped by. Hours and days are those of this machine's clock. */
export const dimensions = ["hour", "day", "status_class", ...nameColumns] as const;
export type Dimension = (typeof dimensions)[number];

export interface Group extends Totals {
  /** Dimension → readable value; null where it is unknown. */
  key: Partial<Record<Dimension, string | null>>;
  /** The filters that find exactly these requests. */
  filters: Filters;
}

export interface Statistics {
  by: Dimension[];
  totals: Totals;
  /** Groups by time: the newest first. Others: those with the most requests first. */
  groups: Group[];
  /** The totals of all groups beyond `maxGroups`. */
  others: Totals | null;
}

/** Of more groups only those met first, which are the newest, are kept. */
const maxGroups = 5_000;
/** Other work has its turn after the groups of so many requests are listed. */
const rowsInOneTurn = 50_000;

/** @param by Two dimensions at most. */
export async function statisticsOf(columns: ColumnCache, filters: Filters, by: Dimension[]): Promise<Statistics> {
  const narrowed = nameColumns.filter((name) => filters[name] !== undefined);
  const names = [...new Set([...narrowed, ...by.filter(isName)])];
  const groups = new Map<string, { values: Value[]; aggregate: Aggregate }>();
  const total = openAggregate();
  const others = openAggregate();
  for await (const block of columns.read(names, filters)) {
    const matches = matcher(block, filters);
    if (!matches) continue;
    const [one, two] = by.map((dimension) => coder(block, dimension));
    const all: number[] = [];
    const apart = new Map<number, number[]>();
    for (let row = 0; row < block.rows; row += 1) {
      if (!matches(row)) continue;
      all.push(row);
      if (!one) continue;
      // Codes of a block are below 65,536.
      const code = one.code(row) * 65_536 + (two ? two.code(row) : 0);
      const rows = apart.get(code);
      if (rows) rows.push(row);
      else apart.set(code, [row]);
    }
    total.add(block, all);
    for (const rows of apart.values()) {
      const values = [one, two].flatMap((coded) => (coded ? [coded.value(coded.code(rows[0]!))] : []));
      aggregateFor(values).add(block, rows);
    }
  }
  await new Promise(setImmediate);
  const totals = total.totals();
  await new Promise(setImmediate);
  return { by, totals, groups: await listGroups(), others: others.count > 0 ? others.totals() : null };

  function aggregateFor(values: Value[]): Aggregate {
    const key = JSON.stringify(values.map(({ label, from }) => [label, from]));
    const known = groups.get(key);
    if (known) return known.aggregate;
    if (groups.size >= maxGroups) return others;
    const aggregate = openAggregate();
    groups.set(key, { values, aggregate });
    return aggregate;
  }

  async function listGroups(): Promise<Group[]> {
    const start = (values: Value[]) => values.find(({ from }) => from !== undefined)?.from ?? 0;
    const sorted = [...groups.values()].sort(
      (a, b) => start(b.values) - start(a.values) || b.aggregate.count - a.aggregate.count,
    );
    const listed: Group[] = [];
    let inThisTurn = 0;
    for (const { values, aggregate } of sorted) {
      listed.push({ key: keyOf(values), filters: narrow(filters, values), ...aggregate.totals() });
      inThisTurn += 100 + aggregate.count;
      if (inThisTurn < rowsInOneTurn) continue;
      inThisTurn = 0;
      await new Promise(setImmediate);
    }
    return listed;
  }
}

const isName = (dimension: Dimension): dimension is NameColumn => nameColumns.some((name) => name === dimension);

/** Whether a row of the block passes the filters; undefined when none can. The same conditions as `conditionsOf` in page.ts. */
function matcher(block: ColumnBlock, filters: Filters): ((row: number) => boolean) | undefined {
  const { stream, status, status_class, has_error, from_ms, to_ms } = filters;
  const tests: ((row: number) => boolean)[] = [];
  for (const name of nameColumns) {
    const wanted = filters[name];
    if (wanted === undefined) continue;
    const { codes, values } = block.names[name]!;
    const code = values.indexOf(wanted);
    if (code === -1) return undefined;
    if (values.length > 1) tests.push((row) => codes[row] === code);
  }
  if (stream !== undefined) tests.push((row) => block.streamed[row] === Number(stream));
  if (status !== undefined) tests.push((row) => block.status[row] === status);
  if (status_class !== undefined) tests.push((row) => classOf(block.status[row]!) === status_class);
  if (has_error !== undefined) tests.push((row) => block.failed[row] === Number(has_error));
  if (from_ms !== undefined) tests.push((row) => block.started[row]! >= from_ms);
  if (to_ms !== undefined) tests.push((row) => block.started[row]! <= to_ms);
  return (row) => {
    for (const test of tests) if (!test(row)) return false;
    return true;
  };
}

const classOf = (status: number) => Math.floor(status / 100);

/** One value of one dimension. */
interface Value {
  dimension: Dimension;
  label: string | null;
  /** For times: the first and the last millisecond, Unix ms. */
  from?: number;
  to?: number;
}

/** Maps each row of a block to a small number, the same for the same value, and the number to the value. */
interface Coder {
  code(row: number): number;
  value(code: number): Value;
}

function coder(block: ColumnBlock, dimension: Dimension): Coder {
  if (isName(dimension)) {
    const { codes, values } = block.names[dimension]!;
    return { code: (row) => codes[row]!, value: (code) => ({ dimension, label: values[code]! }) };
  }
  if (dimension === "status_class")
    return { code: (row) => classOf(block.status[row]!), value: (code) => ({ dimension, label: `${code}xx` }) };
  return timeCoder(block.started, dimension);
}

/** Time zones differ by whole quarters of an hour, so a quarter lies in one hour and one day. */
const quarterMs = 15 * 60_000;

function timeCoder(started: Float64Array, dimension: "hour" | "day"): Coder {
  const values: Value[] = [];
  const codes = new Map<number, number>();
  const codeOf = (quarter: number) => {
    const value = timeOf[dimension](new Date(quarter * quarterMs));
    const known = values.findIndex(({ from }) => from === value.from);
    return known === -1 ? values.push({ dimension, ...value }) - 1 : known;
  };
  return {
    code(row) {
      const quarter = Math.floor(started[row]! / quarterMs);
      const code = codes.get(quarter) ?? codeOf(quarter);
      codes.set(quarter, code);
      return code;
    },
    value: (code) => values[code]!,
  };
}

const timeOf = {
  day(date: Date) {
    const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
    return {
      label: isoDay(date.getTime()),
      from: new Date(year, month, day).getTime(),
      to: new Date(year, month, day + 1).getTime() - 1,
    };
  },
  /** An hour in which the clock is set is shorter, or occurs twice. @param date The start of a quarter of an hour. */
  hour(date: Date) {
    const label = hourOf(date);
    const at = (quarters: number) => new Date(date.getTime() + quarters * quarterMs);
    let [first, last] = [0, 0];
    while (hourOf(at(first - 1)) === label) first -= 1;
    while (hourOf(at(last + 1)) === label) last += 1;
    return { label, from: at(first).getTime(), to: at(last + 1).getTime() - 1 };
  },
};

/** Includes the offset from UTC, because an hour occurs twice when summer time ends. */
function hourOf(date: Date): string {
  return `${isoDay(date.getTime())}T${clock(date.getTime()).slice(0, 2)}:00${utcOffset(date)}`;
}

const keyOf = (values: Value[]) => Object.fromEntries(values.map(({ dimension, label }) => [dimension, label]));

function narrow(filters: Filters, values: Value[]): Filters {
  const narrower: Filters = { ...filters };
  for (const { dimension, label, from = 0, to = 0 } of values)
    if (isName(dimension)) narrower[dimension] = label;
    else if (dimension === "status_class") narrower.status_class = Number.parseInt(label!, 10);
    else {
      narrower.from_ms = Math.max(from, narrower.from_ms ?? from);
      narrower.to_ms = Math.min(to, narrower.to_ms ?? to);
    }
  return narrower;
}
