/** The filters for rows of the history. */
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

/** The names that are filtered by. */
export const filteredNames = (filters: Filters): NameColumn[] =>
  nameColumns.filter((name) => filters[name] !== undefined);
