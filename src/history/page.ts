import type { Database } from "bun:sqlite";
import type { Row } from "./entry";

/** What a page may be narrowed to; absent means any. Times are Unix ms, both ends included. */
export interface Filters {
  account_id?: string;
  upstream_model?: string;
  client_model?: string;
  upstream_endpoint?: string;
  path?: string;
  status?: number;
  has_error?: boolean;
  from_ms?: number;
  to_ms?: number;
}

/** The newest first. */
export interface Page {
  items: Row[];
  /** Asks for the rows after these; null on the last page. */
  next_cursor_id: number | null;
  has_more: boolean;
}

/** How each filter is said; only those that are present are, as a condition that may be absent defeats the index. */
const conditions: Record<keyof Filters, (wanted: unknown) => string> = {
  account_id: () => "account_id = $account_id",
  upstream_model: () => "upstream_model = $upstream_model",
  client_model: () => "client_model = $client_model",
  upstream_endpoint: () => "upstream_endpoint = $upstream_endpoint",
  path: () => "path = $path",
  status: () => "http_status = $status",
  has_error: (wanted) => (wanted ? "error_type IS NOT NULL" : "error_type IS NULL"),
  from_ms: () => "started_at_ms >= $from_ms",
  to_ms: () => "started_at_ms <= $to_ms",
};

export function page(database: Database, filters: Filters, limit: number, cursor?: number): Page {
  const where = Object.entries(conditions)
    .map(([name, condition]) => ({ wanted: filters[name as keyof Filters], condition }))
    .filter(({ wanted }) => wanted !== undefined)
    .map(({ wanted, condition }) => condition(wanted));
  if (cursor !== undefined) where.push("id < $cursor");
  const sql = `SELECT * FROM requests ${where.length ? `WHERE ${where.join(" AND ")}` : ""} ORDER BY id DESC LIMIT $limit`;
  const { has_error: _, ...values } = filters;
  const bindings = { ...values, limit: limit + 1, cursor: cursor ?? null };
  const rows = database.query(sql).all(bindings) as Row[];
  const items = rows.slice(0, limit);
  const has_more = rows.length > limit;
  return { items, has_more, next_cursor_id: has_more ? items.at(-1)!.id : null };
}
