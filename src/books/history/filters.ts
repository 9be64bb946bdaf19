/** The filters for rows of the history. */
import { type NameColumn, nameColumns } from "./entry";

/** Filters for rows. Absent matches any value, null matches an unknown value. Times are Unix ms, both ends included. */
export interface Filters extends Partial<Record<NameColumn, string | null>> {
  stream?: boolean;
  status?: number;
  /** The first digit of a status. */
  status_class?: number;
  has_error?: boolean;
  has_prompt?: boolean;
  from_ms?: number;
  to_ms?: number;
}

/** The names that are filtered by. */
export const filteredNames = (filters: Filters): NameColumn[] =>
  nameColumns.filter((name) => filters[name] !== undefined);
