/** Reads rows of the history in Postgres. */
import type { SQL } from "bun";
import { columnNames, entryColumns, type Row } from "../history/entry";

/** Whole numbers of 64 bits come as text unless they are made floating-point numbers, which are exact up to 2^53. */
export const selected = [
  "id::float8 AS id",
  ...columnNames.map((name) => (entryColumns[name].sql.startsWith("INTEGER") ? `${name}::float8 AS ${name}` : name)),
].join(", ");

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
