/** Adds up the requests of a span of time in Postgres, into the aggregates of `history/aggregate.ts`. */
import type { SQL } from "bun";
import { type Aggregate, openAggregate } from "../../history/aggregate";
import { type Dimension, type GroupValue, isName, timeSpans } from "../../history/dimensions";
import type { Filters } from "../../history/filters";
import {
  bucketCount,
  bucketExact,
  bucketGrowth,
  durations,
  type Measure,
  measureNames,
  measures,
  quarterMs,
  sumPlaces,
} from "../../history/rollup";
import { conditionsOf } from "./request-queries";

/** The requests of one group. */
export interface ChunkGroup {
  values: GroupValue[];
  aggregate: Aggregate;
}

/** The columns that are counted and added up, in the order of `Aggregate.counts` and `Aggregate.sums`. */
const columns = [...measureNames, ...durations];

const sums = [
  "count(*)::float8 AS rows",
  "count(error_type)::float8 AS errors",
  "min(started_at_ms)::float8 AS first_at",
  "max(started_at_ms)::float8 AS last_at",
  "sum(cached_tokens) FILTER (WHERE input_tokens IS NOT NULL)::float8 AS cached",
  "sum(input_tokens) FILTER (WHERE cached_tokens IS NOT NULL)::float8 AS cacheable",
  ...columns.flatMap((name) => [
    `count(${name})::float8 AS ${name}_count`,
    `sum(${scaled(name)})::float8 AS ${name}_sum`,
  ]),
].join(", ");

/** In whole parts of one, so that sums are exact. */
function scaled(name: string): string {
  const parts = name in measures ? measures[name as Measure] : 1;
  return parts === 1 ? name : `round(${name} * ${parts})`;
}

/** As `bucketOf` of the rollup. */
const bucketSql = (name: string) => `CASE WHEN ${name} IS NULL THEN 0
  WHEN ${name} < ${bucketExact} THEN 1 + greatest(${name}, 0)
  ELSE least(${bucketCount - 1}, ${1 + bucketExact} + floor(ln(${name} / ${bucketExact}.0::float8) / ${bucketGrowth})) END::int`;

type Row = Record<string, number | string | null>;

/** Rows by the transaction that stored them, as in the column `arrived`. */
export interface Arrived {
  from?: number;
  before?: number;
}

/**
 * @param filters With both times.
 * @param by Two dimensions at most.
 * @param arrived Of these transactions only.
 */
export async function addUp(
  sql: SQL,
  filters: Filters & { from_ms: number; to_ms: number },
  by: readonly Dimension[],
  arrived: Arrived = {},
): Promise<ChunkGroup[]> {
  const { sql: passes, values } = conditionsOf(filters);
  const parameters = [...values];
  const { from, before } = arrived;
  // Rows of before the column existed have none: they came before all others.
  const condition = [
    passes,
    ...(from === undefined ? [] : [`arrived >= $${parameters.push(from)}::bigint`]),
    ...(before === undefined ? [] : [`(arrived < $${parameters.push(before)}::bigint) IS NOT FALSE`]),
  ].join(" AND ");
  const coders = by.map((dimension) => coderOf(dimension, filters));
  const keys = coders.map(({ expression, parameter }, at) => {
    const place = parameter === undefined ? "" : `$${parameters.push(parameter)}`;
    return `${expression(place)} AS key_${at}`;
  });
  const names = keys.map((_, at) => `key_${at}`);
  const buckets = durations.map((name, at) => `${bucketSql(name)} AS bucket_${at}`);
  // One set for each duration: the sums are those of the first.
  const sets = durations.map((_, at) => `(${[...names, `bucket_${at}`].join(", ")})`).join(", ");
  const rows = (await sql.unsafe(
    `SELECT ${[...names, ...durations.map((_, at) => `bucket_${at}`)].join(", ")}, grouping(bucket_0) AS which, ${sums}
     FROM (SELECT *, ${[...keys, ...buckets].join(", ")} FROM dragoman.requests WHERE ${condition}) AS matching
     GROUP BY GROUPING SETS (${sets})`,
    parameters,
  )) as Row[];
  const groups = new Map<string, ChunkGroup>();
  for (const row of rows) {
    const codes = names.map((name) => row[name] ?? null);
    const id = JSON.stringify(codes);
    let group = groups.get(id);
    if (!group) {
      group = { values: coders.map(({ valueFor }, at) => valueFor(codes[at]!)), aggregate: openAggregate() };
      groups.set(id, group);
    }
    addRow(group.aggregate, row);
  }
  return [...groups.values()];
}

function addRow(aggregate: Aggregate, row: Row): void {
  const { counts, sums: total, buckets } = aggregate;
  const number = (name: string) => (row[name] as number | null) ?? 0;
  const which = number("which");
  buckets[which * bucketCount + number(`bucket_${which}`)]! += number("rows");
  if (which > 0) return;
  aggregate.errors += number("errors");
  counts[0]! += number("rows");
  for (const [at, name] of columns.entries()) {
    counts[1 + at]! += number(`${name}_count`);
    total[at]! += number(`${name}_sum`);
  }
  total[sumPlaces.cached]! += number("cached");
  total[sumPlaces.cacheable]! += number("cacheable");
  total[sumPlaces.first] = Math.min(total[sumPlaces.first]!, number("first_at"));
  total[sumPlaces.last] = Math.max(total[sumPlaces.last]!, number("last_at"));
}

/** How the values of a dimension are computed in SQL, and what they mean. */
interface Coder {
  /** @param place The parameter, if there is one. */
  expression(place: string): string;
  parameter?: unknown;
  valueFor(code: string | number | null): GroupValue;
}

function coderOf(dimension: Dimension, { from_ms, to_ms }: { from_ms: number; to_ms: number }): Coder {
  if (isName(dimension))
    return { expression: () => dimension, valueFor: (label) => ({ dimension, label: label as string | null }) };
  if (dimension === "status_class")
    return {
      expression: () => "(http_status / 100)::int",
      valueFor: (digit) => ({ dimension, label: `${digit}xx` }),
    };
  const spans = spansBetween(dimension, from_ms, to_ms);
  return {
    // Hours and days are those of this machine's clock, which the database does not know.
    expression: (place) => `width_bucket(started_at_ms, ${place}::bigint[])`,
    parameter: spans.map(({ from }) => from),
    valueFor: (number) => ({ dimension, ...spans[(number as number) - 1]! }),
  };
}

function spansBetween(dimension: "hour" | "day", first: number, last: number) {
  const spans = [];
  for (let at = first; at <= last; at = spans.at(-1)!.to + 1)
    spans.push(timeSpans[dimension](new Date(Math.floor(at / quarterMs) * quarterMs)));
  return spans;
}
