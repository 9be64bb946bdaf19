/** Totals and groups of requests, added up by Postgres. They have the meaning of `history/statistics.ts`. */
import type { SQL } from "bun";
import type { Totals } from "../../history/aggregate";
import {
  type Dimension,
  type GroupValue,
  groupKey,
  isName,
  maxGroups,
  narrowTo,
  timeSpans,
} from "../../history/dimensions";
import type { Filters } from "../../history/filters";
import { durations, type Measure, measureNames, measures, quarterMs } from "../../history/rollup";
import type { Statistics } from "../../history/statistics";
import { conditionsOf } from "./request-queries";

/** What is added up: alias → expression. */
const sums: Record<string, string> = {
  rows: "count(*)",
  errors: "count(error_type)",
  first_at: "min(started_at_ms)",
  last_at: "max(started_at_ms)",
  cached_known: `sum(cached_tokens) FILTER (WHERE input_tokens IS NOT NULL)`,
  cacheable: `sum(input_tokens) FILTER (WHERE cached_tokens IS NOT NULL)`,
  ...Object.fromEntries(
    [...measureNames, ...durations].flatMap((name) => [
      [`${name}_count`, `count(${name})`],
      [`${name}_sum`, `sum(${scaled(name)})`],
    ]),
  ),
};
/** These cannot be added up from those of several groups. */
const percentiles: Record<string, string> = Object.fromEntries(
  durations.flatMap((name) => [
    [`${name}_p50`, `percentile_disc(0.5) WITHIN GROUP (ORDER BY ${name})`],
    [`${name}_p95`, `percentile_disc(0.95) WITHIN GROUP (ORDER BY ${name})`],
  ]),
);
const aggregates = Object.entries({ ...sums, ...percentiles })
  .map(([alias, expression]) => `(${expression})::float8 AS ${alias}`)
  .join(", ");

/** In whole parts of one, so that sums are exact. */
function scaled(name: string): string {
  const parts = name in measures ? measures[name as Measure] : 1;
  return parts === 1 ? name : `round(${name} * ${parts})`;
}

type Sums = Record<string, number | null>;

/** @param by Two dimensions at most. */
export async function statisticsIn(sql: SQL, filters: Filters, by: Dimension[]): Promise<Statistics> {
  const { sql: condition, values } = conditionsOf(filters);
  if (by.length === 0) {
    const [total] = await sql.unsafe(`SELECT ${aggregates} FROM dragoman.requests WHERE ${condition}`, values);
    return { by, totals: totalsOf(total), groups: [], others: null };
  }
  const coders = await Promise.all(by.map((dimension) => coderOf(sql, dimension, condition, values)));
  const parameters = [...values];
  const keys = coders.map(({ expression, parameter }, at) => {
    const place = parameter === undefined ? "" : `$${parameters.push(parameter)}`;
    return `${expression(place)} AS key_${at}`;
  });
  const names = coders.map((_, at) => `key_${at}`);
  const rows = (await sql.unsafe(
    `SELECT ${names.join(", ")}, grouping(${names[0]}) AS is_total, ${aggregates}
     FROM (SELECT *, ${keys.join(", ")} FROM dragoman.requests WHERE ${condition}) AS matching
     GROUP BY GROUPING SETS ((${names.join(", ")}), ())`,
    parameters,
  )) as Sums[];
  const total = rows.find(({ is_total }) => is_total === 1)!;
  const groups = rows
    .filter((row) => row !== total)
    .map((row) => ({ row, values: coders.map(({ groupValueOf }, at) => groupValueOf(row[names[at]!] ?? null)) }))
    .sort((one, other) => startOf(other.values) - startOf(one.values) || other.row.rows! - one.row.rows!);
  const others = groups.splice(maxGroups).map(({ row }) => row);
  return {
    by,
    totals: totalsOf(total),
    groups: groups.map(({ row, values: given }) => ({
      key: groupKey(given),
      filters: narrowTo(filters, given),
      ...totalsOf(row),
    })),
    others: others.length === 0 ? null : totalsOf(added(others)),
  };
}

const startOf = (values: GroupValue[]) => values.find(({ from }) => from !== undefined)?.from ?? 0;

/** How the values of a dimension are computed in SQL, and what they mean. */
interface Coder {
  /** @param place The parameter, if there is one. */
  expression(place: string): string;
  parameter?: unknown;
  groupValueOf(code: unknown): GroupValue;
}

async function coderOf(sql: SQL, dimension: Dimension, condition: string, values: unknown[]): Promise<Coder> {
  if (isName(dimension))
    return { expression: () => dimension, groupValueOf: (label) => ({ dimension, label: label as string | null }) };
  if (dimension === "status_class")
    return { expression: () => "http_status / 100", groupValueOf: (digit) => ({ dimension, label: `${digit}xx` }) };
  const [range] = await sql.unsafe(
    `SELECT min(started_at_ms)::float8 AS first, max(started_at_ms)::float8 AS last FROM dragoman.requests WHERE ${condition}`,
    values,
  );
  const spans = range.first === null ? [] : spansBetween(dimension, range.first, range.last);
  return {
    // Hours and days are those of this machine's clock, which the database does not know.
    expression: (place) => `width_bucket(started_at_ms, ${place}::bigint[])`,
    parameter: spans.map(({ from }) => from),
    groupValueOf: (number) => ({ dimension, ...spans[(number as number) - 1]! }),
  };
}

function spansBetween(dimension: "hour" | "day", first: number, last: number) {
  const spans = [];
  for (let at = first; at <= last; at = spans.at(-1)!.to + 1)
    spans.push(timeSpans[dimension](new Date(Math.floor(at / quarterMs) * quarterMs)));
  return spans;
}

/** The sums of several groups. Their percentiles are unknown. */
function added(rows: Sums[]): Sums {
  const total: Sums = {};
  for (const name of Object.keys(sums)) {
    const known = rows.map((row) => row[name]).filter((value) => typeof value === "number");
    const combine = name === "first_at" ? Math.min : name === "last_at" ? Math.max : (a: number, b: number) => a + b;
    total[name] = known.length === 0 ? null : known.reduce((one, other) => combine(one, other));
  }
  return total;
}

function totalsOf(row: Sums): Totals {
  const count = row.rows!;
  const known = {} as Record<Measure, number | null>;
  const unknown = {} as Record<Measure, number>;
  for (const name of measureNames) {
    const values = row[`${name}_count`]!;
    known[name] = values === 0 && count > 0 ? null : (row[`${name}_sum`] ?? 0) / measures[name];
    unknown[name] = count - values;
  }
  const average = (name: string) => {
    const values = row[`${name}_count`]!;
    return values === 0 ? null : Math.round(row[`${name}_sum`]! / values);
  };
  const at = (name: string) => row[name] ?? null;
  return {
    request_count: count,
    error_count: row.errors!,
    success_rate: count > 0 ? (count - row.errors!) / count : null,
    ...known,
    unknown,
    cached_share: (row.cacheable ?? 0) > 0 ? (row.cached_known ?? 0) / row.cacheable! : null,
    avg_duration_ms: average("duration_ms"),
    p50_duration_ms: at("duration_ms_p50"),
    p95_duration_ms: at("duration_ms_p95"),
    avg_first_byte_ms: average("first_byte_ms"),
    p50_first_byte_ms: at("first_byte_ms_p50"),
    p95_first_byte_ms: at("first_byte_ms_p95"),
    first_at_ms: at("first_at"),
    last_at_ms: at("last_at"),
  };
}
