/** Divides the time of a question into whole hours that the rollup has, and pieces whose rows are read. */
import { dayMs, hourMs } from "../../lib/format";
import { type Dimension, type GroupValue, timeSpans } from "./dimensions";
import type { Filters } from "./filters";
import { type PeriodLength, periodLengths } from "./rollup";
import { boundsOf, Parameters, type Source } from "./sql";

export type TimeDimension = Extract<Dimension, "hour" | "day">;

/** The first and the last of its hours, or of its milliseconds (Unix time), the number of its span, and which periods it has. */
export type Piece = [first: number, last: number, span: number, length?: PeriodLength];

export interface Pieces {
  /** The values of the time dimensions in each span, in their order; the oldest span first. */
  spans: GroupValue[][];
  /** To be read from the rollup. */
  periods: Piece[];
  /** To be read from the rows. */
  times: Piece[];
}

/**
 * @param times Each span is within one value of each; without any there is one span.
 * @param lengths Which periods of the rollup are used: without any, everything is read from the rows.
 */
export async function piecesOf(
  source: Source,
  filters: Filters,
  times: readonly TimeDimension[],
  lengths: readonly PeriodLength[] = periodLengths,
): Promise<Pieces> {
  const stored = await storedTimes(source);
  if (!stored) return { spans: [], periods: [], times: [] };
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = boundsOf(filters);
  // The first and the last day are whole ones, whatever their first and last row are.
  const first = Math.max(from, Math.floor(stored.first / dayMs) * dayMs);
  const last = Math.min(to, (Math.floor(stored.last / dayMs) + 1) * dayMs - 1);
  if (first > last) return { spans: [], periods: [], times: [] };
  const complete = lengths.length === 0 ? [] : await completePeriods(source, hourOf(first), hourOf(last), lengths);
  const ranges =
    times.length === 0
      ? [{ from: first, to: last, values: [] }]
      : spansOf(await hoursWithRows(source, first, last, complete), times);
  const pieces: Pieces = { spans: ranges.map(({ values }) => values), periods: [], times: [] };
  let at = 0;
  for (const [span, range] of ranges.entries())
    at = divide(pieces, Math.max(range.from, first), Math.min(range.to, last), span, complete, at);
  return pieces;
}

export const hourOf = (ms: number) => Math.floor(ms / hourMs);

interface Period {
  hour: number;
  length: PeriodLength;
}

/** @param at Where in `complete` to begin. @returns Where the next span has to begin. */
function divide(
  { periods, times }: Pieces,
  from: number,
  to: number,
  span: number,
  complete: readonly Period[],
  at: number,
): number {
  let next = from;
  let place = at;
  for (; place < complete.length && complete[place]!.hour * hourMs <= to; place += 1) {
    const { hour, length } = complete[place]!;
    const [start, end] = [hour * hourMs, (hour + length) * hourMs - 1];
    // It begins before the span, or within a day that was taken.
    if (start < next) continue;
    if (end > to && length === 1) break;
    if (end > to) continue;
    if (start > next) times.push([next, start - 1, span]);
    const before = periods.at(-1);
    if (before && before[1] === hour - length && before[2] === span && before[3] === length) before[1] = hour;
    else periods.push([hour, hour, span, length]);
    next = end + 1;
  }
  if (next <= to) times.push([next, to, span]);
  return place;
}

async function storedTimes({ dialect, rows }: Source): Promise<{ first: number; last: number } | undefined> {
  const one = (name: "min" | "max") =>
    `(SELECT ${dialect.number(`${name}(started_at_ms)`)} FROM ${dialect.tables.requests})`;
  const [row] = await rows<{ first: number | null; last: number | null }>(
    `SELECT ${one("min")} AS first, ${one("max")} AS last`,
    [],
  );
  return row?.first == null || row.last === null ? undefined : { first: row.first, last: row.last };
}

/** In the order of time, a day before its hours. */
async function completePeriods(
  { dialect, rows }: Source,
  first: number,
  last: number,
  lengths: readonly PeriodLength[],
): Promise<Period[]> {
  const parameters = new Parameters(dialect);
  const [hour, length] = ["hour", "length"].map(dialect.number);
  return await rows<Period>(
    `SELECT ${hour} AS hour, ${length} AS length FROM ${dialect.tables.periods}
      WHERE hour BETWEEN ${parameters.number(first)} AND ${parameters.number(last)} AND length IN (${lengths})
        AND ${dialect.isComplete} ORDER BY hour, length DESC`,
    parameters.values,
  );
}

/** The hours of these times that have rows: with a clock that was wrong, they are few in a long time. */
async function hoursWithRows(
  { dialect, rows }: Source,
  first: number,
  last: number,
  complete: readonly Period[],
): Promise<number[]> {
  const gaps: Pieces = { spans: [], periods: [], times: [] };
  divide(gaps, first, last, 0, complete, 0);
  const parameters = new Parameters(dialect);
  const found = await rows<{ hour: number }>(
    `SELECT DISTINCT ${dialect.number(`started_at_ms / ${hourMs}`)} AS hour
      ${dialect.within(parameters.pieces(gaps.times), dialect.tables.requests, "started_at_ms BETWEEN first_ms AND last_ms")}`,
    parameters.values,
  );
  const hours = complete.filter(({ length }) => length === 1);
  return [...hours, ...found].map(({ hour }) => hour).sort((one, other) => one - other);
}

interface Span {
  from: number;
  to: number;
  values: GroupValue[];
}

/** The oldest first. */
function spansOf(hours: readonly number[], dimensions: readonly TimeDimension[]): Span[] {
  const spans: Span[] = [];
  for (const hour of hours)
    for (let at = Math.max(hour * hourMs, spans.at(-1) ? spans.at(-1)!.to + 1 : 0); at < (hour + 1) * hourMs; ) {
      const values = dimensions.map((dimension) => ({ dimension, ...timeSpans[dimension](new Date(at)) }));
      const span = {
        from: Math.max(...values.map(({ from }) => from)),
        to: Math.min(...values.map(({ to }) => to)),
        values,
      };
      spans.push(span);
      at = span.to + 1;
    }
  return spans;
}
