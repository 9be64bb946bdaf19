/** Reads rows of the history by filters, one page at a time. */
import type { Database } from "bun:sqlite";
import type { Row } from "./entry";
import { conditionOf, type Filters } from "./filters";
import { blockOf, blockRows } from "./rollup";
import { cellTest, idRange, readIds, readKeys } from "./rollup-store";

/** The newest first. */
export interface HistoryPage {
  items: Row[];
  /** The cursor of the next page; null on the last page. */
  next_cursor_id: number | null;
  has_more: boolean;
}

/** @param cursor The id before which the page begins; the newest row when missing. */
export function readPage(database: Database, filters: Filters, limit: number, cursor?: number): HistoryPage {
  const rows = newestRows(database, filters, limit + 1, cursor);
  const items = rows.slice(0, limit);
  const has_more = rows.length > limit;
  return { items, has_more, next_cursor_id: has_more ? items.at(-1)!.id : null };
}

/** Goes through the blocks from the newest to the oldest. The rollup says which of them have rows that pass, and which. */
function newestRows(database: Database, filters: Filters, wanted: number, cursor?: number): Row[] {
  const rows: Row[] = [];
  const ids = idRange(database);
  if (!ids) return rows;
  const last = cursor === undefined ? ids.last : Math.min(ids.last, cursor - 1);
  const { from_ms = Number.NEGATIVE_INFINITY, to_ms = Number.POSITIVE_INFINITY, ...others } = filters;
  const narrowed = Object.values(others).some((value) => value !== undefined);
  const passes = cellTest(database, filters);
  for (let block = blockOf(last); block >= blockOf(ids.first) && rows.length < wanted; block -= 1) {
    const [low, high] = [block * blockRows, Math.min(last, (block + 1) * blockRows - 1)];
    const keys = readKeys(database, block);
    if (keys && (!passes || keys.lastMs < from_ms || keys.firstMs > to_ms)) continue;
    if (passes && keys && narrowed && keys.firstMs >= from_ms && keys.lastMs <= to_ms) {
      const passing = Array.from({ length: keys.cells }, (_, cell) => passes(keys, cell));
      if (!passing.includes(true)) continue;
      const found = readIds(database, block, (cell) => passing[cell]!)!.filter((id) => id <= high);
      rows.push(...rowsOf(database, found.slice(0, wanted - rows.length)));
    } else rows.push(...scan(database, filters, low, high, wanted - rows.length));
  }
  return rows;
}

function scan(database: Database, filters: Filters, firstId: number, lastId: number, limit: number): Row[] {
  const { sql, values } = scanQuery(filters, firstId, lastId, limit);
  return database.query(sql).all(values) as Row[];
}

export function scanQuery(filters: Filters, firstId: number, lastId: number, limit: number) {
  const { sql, values } = conditionOf(filters, firstId, lastId);
  return {
    sql: `SELECT * FROM requests WHERE ${sql} ORDER BY id DESC LIMIT $limit`,
    values: { ...values, limit },
  };
}

export const rowsQuery = `SELECT requests.* FROM json_each($ids) AS wanted CROSS JOIN requests ON requests.id = wanted.value
  ORDER BY wanted.key`;

function rowsOf(database: Database, ids: number[]): Row[] {
  return database.query<Row, [{ ids: string }]>(rowsQuery).all({ ids: JSON.stringify(ids) });
}
