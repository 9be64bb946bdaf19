/** Totals and groups of requests, added up by the database: whole hours from the rollup, the rest from the rows. */
import { type Dimension, type GroupValue, groupKey, isName, maxGroups, narrowTo } from "./dimensions";
import type { NameColumn } from "./entry";
import type { Filters } from "./filters";
import { type Piece, type Pieces, piecesOf, type TimeDimension } from "./pieces";
import { addedSums, sumColumns, sumsOfRows, viewOf } from "./rollup";
import { and, conditionsOf, Parameters, type Source } from "./sql";
import { Adder, noTotals, type Sums, type Totals } from "./totals";

export { type Dimension, dimensions } from "./dimensions";

export interface Group extends Totals {
  /** Dimension → readable value; null where it is unknown. */
  key: Partial<Record<Dimension, string | null>>;
  /** The filters that find exactly these requests. */
  filters: Filters;
}

export interface Statistics {
  by: Dimension[];
  totals: Totals;
  /** Groups by time: the newest first. Others: those with the most requests first. */
  groups: Group[];
  /** The totals of all groups beyond `maxGroups`. */
  others: Totals | null;
}

/** Other work has its turn after so long, ms. */
const turnMs = 2;

/** @param by Two dimensions at most. @param sessions Only the requests of these. */
export async function statisticsOf(
  source: Source,
  filters: Filters,
  by: Dimension[],
  sessions?: readonly string[],
): Promise<Statistics> {
  const times = by.filter((dimension) => dimension === "hour" || dimension === "day") as TimeDimension[];
  const view = viewOf(sessions ? { ...filters, session: "" } : filters, by);
  const pieces = await piecesOf(source, filters, times, view === undefined ? [] : undefined);
  const rows = pieces.spans.length === 0 ? [] : await sumsOf(source, { filters, by, sessions, view, pieces });
  const total = new Adder();
  const groups: Group[] = [];
  let others: Totals | null = null;
  let until = performance.now() + turnMs;
  for (const row of rows) {
    total.add(row);
    const adder = new Adder();
    adder.add(row);
    if (row.place === null) others = adder.totals();
    else {
      const values = by.map((dimension, at) =>
        groupValue(dimension, row[`key_${at}`] ?? null, pieces.spans[row.span]!),
      );
      groups.push({ key: groupKey(values), filters: narrowTo(filters, values), ...adder.totals() });
    }
    if (performance.now() < until) continue;
    await new Promise(setImmediate);
    until = performance.now() + turnMs;
  }
  return { by, totals: rows.length === 0 ? noTotals() : total.totals(), groups: by.length === 0 ? [] : groups, others };
}

type GroupRow = Sums & Record<`key_${number}`, string | number | null> & { span: number; place: number | null };

function groupValue(dimension: Dimension, key: string | number | null, times: GroupValue[]): GroupValue {
  if (isName(dimension)) return { dimension, label: key as string | null };
  if (dimension === "status_class") return { dimension, label: `${key}xx` };
  return times.find((time) => time.dimension === dimension)!;
}

interface Question {
  filters: Filters;
  by: readonly Dimension[];
  sessions?: readonly string[];
  view: number | undefined;
  pieces: Pieces;
}

/** One row for each of the first groups, and one without a place for all others. */
function sumsOf(source: Source, question: Question): GroupRow[] | Promise<GroupRow[]> {
  const { dialect } = source;
  const parameters = new Parameters(dialect);
  const keys = question.by.map((_, at) => `key_${at}`);
  const selected = (sums: string) =>
    [...keys.map((key) => `min(${key}) AS ${key}`), "min(span) AS span", sums].join(", ");
  const numbers = sumColumns.map(({ name, added }) => (added === "join" ? name : `${dialect.number(name)} AS ${name}`));
  const sql = `WITH ${sumsBy(question, parameters)},
    placed AS (SELECT *, row_number() OVER (ORDER BY ${["span DESC", "requests DESC", ...keys.map((key) => `${key} NULLS LAST`)].join(", ")}) AS number FROM grouped),
    limited AS (SELECT CASE WHEN number <= ${maxGroups} THEN number END AS place, ${selected(addedSums(dialect))}
      FROM placed GROUP BY CASE WHEN number <= ${maxGroups} THEN number END)
    SELECT ${[dialect.number("place"), "AS place,", dialect.number("span"), "AS span,", ...keys.map((key) => `${key},`)].join(" ")}
      ${numbers.join(", ")} FROM limited ORDER BY place IS NULL, place`;
  return source.rows<GroupRow>(sql, parameters.values);
}

/**
 * A subquery `grouped` with a row for each group: columns `span` and `key_0`, `key_1`, and the sums.
 * @param columns Of `sumColumns`, if not all are needed.
 */
function sumsBy(question: Question, parameters: Parameters, columns = sumColumns): string {
  const { filters, by, sessions, view, pieces } = question;
  const { dialect } = parameters;
  const keys = by.map((dimension, at) => `${keyOf(dimension)} AS key_${at}`);
  const chosen = sessions ? [`session IN (SELECT ${dialect.texts(parameters.json(sessions))})`] : [];
  const groups = ["span", ...by.map((_, at) => `key_${at}`)].join(", ");
  const select = (from: string, list: readonly Piece[], column: string, conditions: string[], sums: string) =>
    `SELECT ${["span", ...keys, sums].join(", ")}
      ${dialect.within(parameters.pieces(list), from, `${column} BETWEEN first_ms AND last_ms${and([...conditions, ...chosen])}`)}
      GROUP BY ${groups}`;
  const parts = [
    select(
      dialect.tables.requests,
      pieces.times,
      "started_at_ms",
      conditionsOf(filters, parameters),
      sumsOfRows(dialect, columns),
    ),
  ];
  if (view !== undefined && pieces.periods.length > 0) {
    const conditions = [`each.length = piece.length AND view = ${view}`, ...conditionsOf(filters, parameters, "cells")];
    parts.push(select(dialect.tables.rollup, pieces.periods, "hour", conditions, addedSums(dialect, columns)));
  }
  return `parts AS (${parts.join(" UNION ALL ")}),
    grouped AS (SELECT ${groups}, ${addedSums(dialect, columns)} FROM parts GROUP BY ${groups})`;
}

const keyOf = (dimension: Dimension): string =>
  isName(dimension) ? dimension : dimension === "status_class" ? "http_status / 100" : "NULL";

/** See `History.largestSessions`. */
export async function largestSessionsOf(source: Source, filters: Filters, count: number): Promise<Group[]> {
  const { dialect } = source;
  const by = ["session"] as const satisfies NameColumn[];
  const view = viewOf(filters, by);
  const pieces = await piecesOf(source, filters, [], view === undefined ? [] : undefined);
  const parameters = new Parameters(dialect);
  const columns = sumColumns.filter(({ name }) => /^(?:cached_tokens_count|input_tokens_sum|both_input)$/.test(name));
  const grouped = sumsBy({ filters, by, view, pieces }, parameters, columns);
  const rows = await source.rows<{ session: string }>(
    `WITH ${grouped} SELECT key_0 AS session FROM grouped WHERE key_0 IS NOT NULL AND cached_tokens_count > 0
      ORDER BY both_input DESC, session LIMIT ${count}`,
    parameters.values,
  );
  const sessions = rows.map(({ session }) => session);
  if (sessions.length === 0) return [];
  return (await statisticsOf(source, filters, ["session", "upstream_model"], sessions)).groups;
}
