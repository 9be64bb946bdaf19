/** The SQL that the history's questions have in common, and what SQLite and Postgres say in different words. */
import type { NameColumn } from "./entry";
import { type Filters, filteredNames } from "./filters";

/** The words of one database. */
export interface SqlDialect {
  /** The tables of the rows, of what they add up to, of the periods that are added up, and of what prompts were made of. */
  tables: { requests: string; rollup: string; periods: string; portions: string };
  /** A condition that is true of a period whose cells are all there. */
  isComplete: string;
  parameter(place: number, type: "bigint" | "text"): string;
  /** What a text has to be like to be compared with a stored one. */
  text(value: string): string;
  /** The values of a parameter that is a JSON array of texts. */
  texts(parameter: string): string;
  /**
   * The end of a SELECT, from `FROM` on: the rows `each` of a table for each `piece` of a list, whose members are the columns
   * `first_ms`, `last_ms`, `span` and `length`. The table is read for one piece after the other.
   * @param conditions Between `each` and `piece`, and others.
   * @param most Of the newest rows that are needed, for each piece: all without it.
   */
  within(list: Pieces, table: string, conditions: string, most?: number): string;
  /** The character of `durations.ts` for the bucket of a duration; null if it is null. */
  mark(column: string): string;
  join(texts: string): string;
  /** How many members a JSON array has beyond the first one. */
  further(column: string): string;
  /** A sum as a number of JavaScript. */
  number(expression: string): string;
}

/** Something to ask a database. All that it is asked for one answer is of one moment. */
export interface Source {
  dialect: SqlDialect;
  rows<Row>(sql: string, values: readonly unknown[]): Row[] | Promise<Row[]>;
}

interface Pieces {
  /** A parameter that is a JSON array of arrays. */
  parameter: string;
  count: number;
}

/** The values of a statement, numbered as they are added. */
export class Parameters {
  readonly values: (string | number)[] = [];
  readonly dialect: SqlDialect;

  constructor(dialect: SqlDialect) {
    this.dialect = dialect;
  }

  number(value: number): string {
    return this.dialect.parameter(this.values.push(value), "bigint");
  }

  text(value: string): string {
    return this.dialect.parameter(this.values.push(this.dialect.text(value)), "text");
  }

  pieces(list: readonly (readonly unknown[])[]): Pieces {
    return { parameter: this.json(list), count: list.length };
  }

  json(value: unknown): string {
    return this.dialect.parameter(this.values.push(JSON.stringify(value)), "text");
  }
}

/** The conditions of filters other than times, for the rows or for the cells of the rollup. */
export function conditionsOf(
  filters: Filters,
  parameters: Parameters,
  of: "rows" | "cells" = "rows",
  names: readonly NameColumn[] = filteredNames(filters),
): string[] {
  const { stream, status, status_class, has_error, has_prompt } = filters;
  const terms: string[] = [];
  if (stream !== undefined) terms.push(`stream = ${Number(stream)}`);
  if (status !== undefined) terms.push(`http_status = ${parameters.number(status)}`);
  if (status_class !== undefined) terms.push(`http_status / 100 = ${parameters.number(status_class)}`);
  if (has_error !== undefined)
    terms.push(of === "cells" ? `failed = ${Number(has_error)}` : `error_type IS ${has_error ? "NOT NULL" : "NULL"}`);
  if (has_prompt !== undefined)
    terms.push(of === "cells" ? `prompted = ${Number(has_prompt)}` : `prompt IS ${has_prompt ? "NOT NULL" : "NULL"}`);
  for (const name of names) {
    const value = filters[name]!;
    terms.push(value === null ? `${name} IS NULL` : `${name} = ${parameters.text(value)}`);
  }
  return terms;
}

/** Whole milliseconds that fit into every database. */
export const boundsOf = ({ from_ms, to_ms }: Filters) => ({
  from: from_ms === undefined ? undefined : Math.ceil(clamped(from_ms)),
  to: to_ms === undefined ? undefined : Math.floor(clamped(to_ms)),
});
const clamped = (ms: number) => Math.min(Math.max(ms, -8.64e15), 8.64e15);

/** The same with the times, for the rows. */
export function rowConditions(filters: Filters, parameters: Parameters): string[] {
  const { from, to } = boundsOf(filters);
  const terms = conditionsOf(filters, parameters);
  if (from !== undefined) terms.push(`started_at_ms >= ${parameters.number(from)}`);
  if (to !== undefined) terms.push(`started_at_ms <= ${parameters.number(to)}`);
  return terms;
}

/** ` WHERE …`, or nothing. */
export const where = (terms: readonly string[]) => (terms.length === 0 ? "" : ` WHERE ${terms.join(" AND ")}`);
/** ` AND …`, or nothing. */
export const and = (terms: readonly string[]) => terms.map((term) => ` AND ${term}`).join("");
