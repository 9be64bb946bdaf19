/** The filters for rows of the history, as SQL conditions. */
import type { Entry } from "./entry";

/** The columns that hold a name. Rows can be filtered by each, and statistics grouped by it. */
export const nameColumns = [
  "account_id",
  "account_key",
  "client_model",
  "upstream_model",
  "client_name",
  "key_name",
  "member",
  "path",
  "upstream_endpoint",
  "initiator",
  "session",
  "cache_miss",
] as const satisfies (keyof Entry)[];
export type NameColumn = (typeof nameColumns)[number];

/** Filters for rows. Absent matches any value, null matches an unknown value. Times are Unix ms, both ends included. */
export interface Filters extends Partial<Record<NameColumn, string | null>> {
  stream?: boolean;
  status?: number;
  /** The first digit of a status. */
  status_class?: number;
  has_error?: boolean;
  from_ms?: number;
  to_ms?: number;
}

export interface Condition {
  sql: string;
  values: Record<string, string | number>;
}

/** The rows whose ids lie between two, both included, that pass the filters. */
export function conditionOf(filters: Filters, firstId: number, lastId: number): Condition {
  const { stream, status, status_class, has_error, from_ms, to_ms } = filters;
  // A `+` keeps SQLite from choosing the index of the times: the ids are few.
  const terms: [sql: string, name: string, value: string | number | undefined][] = [
    ["id >= $firstId", "firstId", firstId],
    ["id <= $lastId", "lastId", lastId],
    ["stream = $stream", "stream", stream === undefined ? undefined : Number(stream)],
    ["http_status = $status", "status", status],
    ["http_status / 100 = $status_class", "status_class", status_class],
    ["(error_type IS NOT NULL) = $has_error", "has_error", has_error === undefined ? undefined : Number(has_error)],
    ["+started_at_ms >= $from_ms", "from_ms", from_ms],
    ["+started_at_ms <= $to_ms", "to_ms", to_ms],
  ];
  const given = terms.filter(([, , value]) => value !== undefined) as [string, string, string | number][];
  const values = Object.fromEntries(given.map(([, name, value]) => [name, value]));
  const sql = given.map(([text]) => text);
  for (const name of nameColumns) {
    const value = filters[name];
    if (value === undefined) continue;
    sql.push(value === null ? `${name} IS NULL` : `${name} = $${name}`);
    if (value !== null) values[name] = value;
  }
  return { sql: sql.join(" AND "), values };
}
