/** Reads rows of the history by filters, one page at a time. */
import type { Row } from "./entry";
import type { Filters } from "./filters";
import { hourOf, piecesOf } from "./pieces";
import { nearestView, views } from "./rollup";
import { and, boundsOf, conditionsOf, Parameters, rowConditions, type Source, where } from "./sql";

/** The newest first. */
export interface Paged<Item> {
  items: Item[];
  /** The cursor of the next page; null on the last page. */
  next_cursor_id: number | null;
  has_more: boolean;
}
export type HistoryPage = Paged<Row>;

/** @param found One more than the page takes, if there are more. */
export function firstOf<Item extends { id: number }>(found: readonly Item[], limit: number): Paged<Item> {
  const items = found.slice(0, limit);
  const has_more = found.length > limit;
  return { items, has_more, next_cursor_id: has_more ? items.at(-1)!.id : null };
}

/**
 * @param selected The columns of a row, in SQL.
 * @param cursor The id before which the page begins; the newest row when missing.
 */
export async function pageOf(
  source: Source,
  selected: string,
  filters: Filters,
  limit: number,
  cursor = Number.MAX_SAFE_INTEGER,
): Promise<HistoryPage> {
  return firstOf(await newestRows(source, selected, filters, limit + 1, cursor), limit);
}

/** Ids between which rows may pass the filters, and how many of an hour do. */
interface Range {
  first: number;
  last: number;
  requests: number;
}

/** The rollup says in which hours rows may pass, and between which ids: others are not read. */
async function newestRows(
  source: Source,
  selected: string,
  filters: Filters,
  wanted: number,
  cursor: number,
): Promise<Row[]> {
  // Without filters each row passes.
  const isAny = Object.values(filters).every((value) => value === undefined);
  if (isAny) return among(source, selected, filters, { cursor, count: wanted, wanted });
  const place = nearestView(filters);
  // The largest view has about as many cells as there are rows.
  if (place.view === views.length - 1) {
    const newest = await among(source, selected, filters, { cursor, count: firstLook, wanted });
    if (newest.length === wanted) return newest;
  }
  const ranges = (await rangesOf(source, filters, place)).filter(({ first }) => first < cursor);
  ranges.sort((one, other) => other.last - one.last);
  for (let enough = wanted; ; enough *= 4) {
    const floor = floorOf(ranges, enough);
    const ids = merged(
      ranges
        .filter(({ last }) => last >= floor)
        .map(({ first, last }) => [Math.max(first, floor), Math.min(last, cursor - 1)]),
    );
    const rows = ids.length === 0 ? [] : await rowsIn(source, selected, filters, ids, wanted);
    if (rows.length === wanted || floor === 0) return rows;
  }
}

/** Rows that are read before it is asked where others may be. */
const firstLook = 500;

/** Of so many rows before the cursor those that pass. */
async function among(
  { dialect, rows }: Source,
  selected: string,
  filters: Filters,
  { cursor, count, wanted }: { cursor: number; count: number; wanted: number },
): Promise<Row[]> {
  const parameters = new Parameters(dialect);
  return rows<Row>(
    `SELECT ${selected} FROM (SELECT * FROM ${dialect.tables.requests} WHERE id < ${parameters.number(cursor)}
        ORDER BY id DESC LIMIT ${count}) AS each
      ${where(rowConditions(filters, parameters))} ORDER BY each.id DESC LIMIT ${wanted}`,
    parameters.values,
  );
}

/** The id from which on there are probably so many rows; 0 if all are needed. */
function floorOf(ranges: readonly Range[], wanted: number): number {
  let requests = 0;
  let floor = Number.POSITIVE_INFINITY;
  for (const range of ranges) {
    requests += range.requests;
    floor = Math.min(floor, range.first);
    if (requests >= wanted) return floor;
  }
  return 0;
}

/** @param ranges By their ends, the last first. */
function merged(ranges: readonly (readonly [number, number])[]): [number, number][] {
  const found: [number, number][] = [];
  for (const [first, last] of ranges) {
    const before = found.at(-1);
    if (before && last >= before[0] - 1) before[0] = Math.min(before[0], first);
    else found.push([first, last]);
  }
  return found;
}

async function rangesOf(
  source: Source,
  filters: Filters,
  { view, names }: ReturnType<typeof nearestView>,
): Promise<Range[]> {
  const { dialect } = source;
  const { from, to } = boundsOf(filters);
  // Whole hours: the rows themselves are asked for their times.
  const hours = {
    ...(from !== undefined && { from_ms: hourOf(from) * 3_600_000 }),
    ...(to !== undefined && { to_ms: (hourOf(to) + 1) * 3_600_000 - 1 }),
  };
  const pieces = await piecesOf(source, hours, [], [1]);
  const parameters = new Parameters(dialect);
  const [first, last, requests] = ["min(first_id)", "max(last_id)", "sum(requests)"].map(dialect.number);
  const [firstRow, lastRow] = ["min(id)", "max(id)"].map(dialect.number);
  const named = and(conditionsOf(filters, parameters, "cells", names));
  const cells = `hour BETWEEN first_ms AND last_ms AND each.length = 1 AND view = ${view}${named}`;
  return await source.rows<Range>(
    `SELECT ${first} AS first, ${last} AS last, ${requests} AS requests
        ${dialect.within(parameters.pieces(pieces.periods), dialect.tables.rollup, cells)} GROUP BY hour
      UNION ALL SELECT ${firstRow} AS first, ${lastRow} AS last, 0 AS requests
        ${dialect.within(parameters.pieces(pieces.times), dialect.tables.requests, "started_at_ms BETWEEN first_ms AND last_ms")}
        GROUP BY first_ms`,
    parameters.values,
  );
}

async function rowsIn(
  { dialect, rows }: Source,
  selected: string,
  filters: Filters,
  ids: readonly [number, number][],
  limit: number,
): Promise<Row[]> {
  const parameters = new Parameters(dialect);
  const list = parameters.pieces(ids.map(([first, last]) => [first, last, 0]));
  const conditions = `id BETWEEN first_ms AND last_ms${and(rowConditions(filters, parameters))}`;
  return rows<Row>(
    `SELECT ${selected} ${dialect.within(list, dialect.tables.requests, conditions, limit)} ORDER BY each.id DESC LIMIT ${limit}`,
    parameters.values,
  );
}
