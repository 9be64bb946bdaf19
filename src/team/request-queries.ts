/** Reads rows of the history in Postgres. */
import type { SQL } from "bun";
import { columnNames, entryColumns, type Row } from "../history/entry";
import { type Filters, nameColumns } from "../history/filters";
import type { HistoryPage } from "../history/page";

/** Whole numbers of 64 bits come as text unless they are made floating-point numbers, which are exact up to 2^53. */
const selected = [
  "id::float8 AS id",
  ...columnNames.map((name) => (entryColumns[name].startsWith("INTEGER") ? `${name}::float8 AS ${name}` : name)),
].join(", ");

/** Conditions with `$1`, `$2` … and their values. */
export interface Conditions {
  sql: string;
  values: unknown[];
}

/** The rows that pass the filters; with `before`, those with smaller ids. */
export function conditionsOf(filters: Filters, before?: number): Conditions {
  const { stream, status, status_class, has_error, from_ms, to_ms } = filters;
  const values: unknown[] = [];
  const terms: string[] = [];
  const add = (term: (parameter: string) => string, value: unknown) => {
    if (value !== undefined) terms.push(term(`$${values.push(value)}`));
  };
  add((value) => `id < ${value}::bigint`, before);
  add((value) => `stream = ${value}::smallint`, stream === undefined ? undefined : Number(stream));
  add((value) => `http_status = ${value}::bigint`, status);
  add((value) => `http_status / 100 = ${value}::bigint`, status_class);
  add((value) => `(error_type IS NOT NULL) = ${value}::boolean`, has_error);
  add((value) => `started_at_ms >= ${value}::bigint`, finite(from_ms));
  add((value) => `started_at_ms <= ${value}::bigint`, finite(to_ms));
  for (const name of nameColumns) {
    const value = filters[name];
    if (value === null) terms.push(`${name} IS NULL`);
    else add((parameter) => `${name} = ${parameter}::text`, value?.replaceAll("\0", "\ufffd"));
  }
  return { sql: terms.length === 0 ? "true" : terms.join(" AND "), values };
}

/** A whole number that fits into the column. */
const finite = (ms: number | undefined) =>
  ms === undefined ? undefined : Math.round(Math.min(Math.max(ms, -8.64e15), 8.64e15));

/** @param cursor The id before which the page begins; the newest row when missing. */
export async function storedPage(sql: SQL, filters: Filters, limit: number, cursor?: number): Promise<HistoryPage> {
  const { sql: condition, values } = conditionsOf(filters, cursor);
  const query = `SELECT ${selected} FROM dragoman.requests WHERE ${condition} ORDER BY id DESC LIMIT ${limit + 1}`;
  const rows = [...((await sql.unsafe(query, values)) as Row[])];
  const items = rows.slice(0, limit);
  const has_more = rows.length > limit;
  return { items, has_more, next_cursor_id: has_more ? items.at(-1)!.id : null };
}

/** The oldest first. */
export async function storedAfter(sql: SQL, id: number, limit: number): Promise<Row[]> {
  const query = `SELECT ${selected} FROM dragoman.requests WHERE id > $1::bigint ORDER BY id LIMIT ${limit}`;
  return [...((await sql.unsafe(query, [id])) as Row[])];
}

export async function storedRequest(sql: SQL, requestId: string): Promise<Row | undefined> {
  const query = `SELECT ${selected} FROM dragoman.requests WHERE request_id = $1 LIMIT 1`;
  const [row] = (await sql.unsafe(query, [requestId.replaceAll("\0", "")])) as Row[];
  return row;
}

export async function countStored(sql: SQL): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`SELECT count(*)::float8 AS rows FROM dragoman.requests`;
  return row!.rows;
}

/** When the oldest and the newest request started, Unix ms; null if there is none. */
export async function storedBounds(sql: SQL): Promise<{ first: number | null; last: number | null; now: number }> {
  const [row] = await sql<{ first: number | null; last: number | null; now: number }[]>`
    SELECT min(started_at_ms)::float8 AS first, max(started_at_ms)::float8 AS last,
      extract(epoch FROM now())::float8 * 1000 AS now FROM dragoman.requests`;
  return row!;
}
