/** Reads rows of the history by filters, one page at a time. */
import type { Database } from "bun:sqlite";
import type { Row } from "./entry";

/** Filters for rows. Absent matches any value, null matches an unknown value. Times are Unix ms, both ends included. */
export interface Filters {
  account_id?: string | null;
  account_key?: string | null;
  client_model?: string | null;
  upstream_model?: string | null;
  client_name?: string | null;
  path?: string | null;
  upstream_endpoint?: string | null;
  initiator?: string | null;
  stream?: boolean;
  status?: number;
  /** The first digit of a status. */
  status_class?: number;
  has_error?: boolean;
  from_ms?: number;
  to_ms?: number;
}

/** The newest first. */
export interface HistoryPage {
  items: Row[];
  /** The cursor of the next page; null on the last page. */
  next_cursor_id: number | null;
  has_more: boolean;
}

/** The columns that hold a name. Rows can be filtered by each, and statistics grouped by it. */
export const nameColumns = [
  "account_id",
  "account_key",
  "client_model",
  "upstream_model",
  "client_name",
  "path",
  "upstream_endpoint",
  "initiator",
] as const satisfies (keyof Filters)[];
export type NameColumn = (typeof nameColumns)[number];

/** @param cursor The id before which the page begins; the newest row when missing. */
export function readPage(database: Database, filters: Filters, limit: number, cursor?: number): HistoryPage {
  const { sql, values } = pageQuery(database, filters, limit + 1, cursor);
  const rows = database.query(sql).all(values) as Row[];
  const items = rows.slice(0, limit);
  const has_more = rows.length > limit;
  return { items, has_more, next_cursor_id: has_more ? items.at(-1)!.id : null };
}

type Values = Record<string, string | number>;

/** Reads rows by id, newest first, through the index with the fewest matching entries. */
export function pageQuery(database: Database, filters: Filters, limit: number, cursor?: number) {
  const { indexed, plain, values } = conditionsOf(filters);
  const lead = rarest(database, indexed, values);
  // A `+` keeps SQLite from choosing another index: it does not know how often a value occurs.
  const where = [...indexed.map((condition) => (condition === lead ? condition : `+${condition}`)), ...plain];
  if (filters.from_ms !== undefined || filters.to_ms !== undefined) {
    const ids = idsBetween(database, filters.from_ms, filters.to_ms);
    where.push("id BETWEEN $first_id AND $last_id");
    Object.assign(values, { first_id: ids?.first ?? 0, last_id: ids?.last ?? -1 });
  }
  if (cursor !== undefined) {
    where.push("id < $cursor");
    values.cursor = cursor;
  }
  const sql = `SELECT * FROM requests ${where.length ? `WHERE ${where.join(" AND ")}` : ""} ORDER BY id DESC LIMIT $limit`;
  return { sql, values: { ...values, limit } };
}

/** Only the filters that are present become conditions: a condition such as `$a IS NULL OR a = $a` would use no index. */
function conditionsOf(filters: Filters): { indexed: string[]; plain: string[]; values: Values } {
  const indexed: string[] = [];
  const plain: string[] = [];
  const values: Values = {};
  for (const name of nameColumns) {
    const value = filters[name];
    if (value === undefined) continue;
    indexed.push(value === null ? `${name} IS NULL` : `${name} = $${name}`);
    if (value !== null) values[name] = value;
  }
  const { stream, status, status_class, has_error, from_ms, to_ms } = filters;
  if (stream !== undefined) indexed.push(`stream = ${stream ? 1 : 0}`);
  if (status !== undefined) {
    indexed.push("http_status = $status");
    values.status = status;
  }
  if (status_class !== undefined) {
    indexed.push("(http_status / 100) = $status_class");
    values.status_class = status_class;
  }
  if (has_error) indexed.push("error_type IS NOT NULL");
  if (has_error === false) plain.push("error_type IS NULL");
  if (from_ms !== undefined) {
    plain.push("+started_at_ms >= $from_ms");
    values.from_ms = from_ms;
  }
  if (to_ms !== undefined) {
    plain.push("+started_at_ms <= $to_ms");
    values.to_ms = to_ms;
  }
  return { indexed, plain, values };
}

/** Counting up to 10,000 entries of each index costs far less than reading through the wrong one. */
function rarest(database: Database, indexed: string[], values: Values): string | undefined {
  if (indexed.length < 2) return indexed[0];
  const counted = indexed.map((condition) => {
    const sql = `SELECT count(*) AS entries FROM (SELECT 1 FROM requests WHERE ${condition} LIMIT 10000)`;
    return { condition, entries: (database.query(sql).get(values) as { entries: number }).entries };
  });
  return counted.reduce((fewest, item) => (item.entries < fewest.entries ? item : fewest)).condition;
}

/** The lowest and highest id of the rows that started in a time range. Clocks may go back, so rows of other times can lie between. */
export function idsBetween(
  database: Database,
  from = 0,
  to = Number.MAX_SAFE_INTEGER,
): { first: number; last: number } | undefined {
  const sql = "SELECT min(id) AS first, max(id) AS last FROM requests WHERE started_at_ms BETWEEN $from AND $to";
  const found = database.query(sql).get({ from, to }) as { first: number | null; last: number | null };
  return found.first === null ? undefined : { first: found.first, last: found.last! };
}
