/** Adds up the requests of a span of time in Postgres, into the aggregates of `history/aggregate.ts`. */
import type { SQL } from "bun";
import { type Aggregate, openAggregate } from "../history/aggregate";
import { type Dimension, type GroupValue, isName, timeSpans } from "../history/dimensions";
import type { Filters } from "../history/filters";
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
} from "../history/rollup";
import { conditionsOf } from "./request-queries";

/** The requests of one group. */
export interface ChunkGroup {
  values: GroupValue[];
  aggregate: Aggregate;
}

/** The columns that are counted and added up, in the order of `Aggregate.counts` and `Aggregate.sums`. */
const columns = [...measureNames, ...durations];

/** Name → the sum of rows, and how such sums are added up. */
const sums: Record<string, [of: string, added: "sum" | "min" | "max"]> = {
  rows: ["count(*)", "sum"],
  errors: ["count(error_type)", "sum"],
  first_at: ["min(started_at_ms)", "min"],
  last_at: ["max(started_at_ms)", "max"],
  cached: ["sum(cached_tokens) FILTER (WHERE input_tokens IS NOT NULL)", "sum"],
  cacheable: ["sum(input_tokens) FILTER (WHERE cached_tokens IS NOT NULL)", "sum"],
  ...Object.fromEntries(
    columns.flatMap((name) => [
      [`${name}_count`, [`count(${name})`, "sum"]],
      [`${name}_sum`, [`sum(${scaled(name)})`, "sum"]],
    ]),
  ),
};
const sumsOfBuckets = Object.entries(sums).map(([name, [of]]) => `${of} AS ${name}`);
const sumNames = Object.keys(sums);
/** As text, because a client is slow at rows of many columns. The sums are those of one duration's buckets. */
const sumsOfGroups = [
  `concat_ws(' ', ${Object.entries(sums)
    .map(([name, [, added]]) => `coalesce(${added}(${name}) FILTER (WHERE which = 0), 0)::float8`)
    .join(", ")}) AS sums`,
  ...durations.map(
    (_, at) => `string_agg(bucket_${at} || ' ' || rows, ' ') FILTER (WHERE which = ${at}) AS ${bucketsOf(at)}`,
  ),
];

/** `<bucket> <requests> <bucket> …` of a duration. */
function bucketsOf(which: number): string {
  return `buckets_${which}`;
}

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

/** Which rows, beside the filters. */
export interface RowsWanted {
  /** By the transaction that stored them, as in the column `arrived`. */
  from?: number;
  before?: number;
  /** Of these sessions. */
  sessions?: readonly string[];
}

/**
 * @param filters With both times.
 * @param by Two dimensions at most.
 * @param wanted Only these.
 */
export async function addUp(
  sql: SQL,
  filters: Filters & { from_ms: number; to_ms: number },
  by: readonly Dimension[],
  wanted: RowsWanted = {},
): Promise<ChunkGroup[]> {
  const { sql: passes, values } = conditionsOf(filters);
  const parameters = [...values];
  const { from, before, sessions } = wanted;
  // Rows of before the column existed have none: they came before all others.
  const condition = [
    passes,
    ...(from === undefined ? [] : [`arrived >= $${parameters.push(from)}::bigint`]),
    ...(sessions === undefined
      ? []
      : [`session IN (SELECT jsonb_array_elements_text($${parameters.push(JSON.stringify(sessions))}::text::jsonb))`]),
    ...(before === undefined ? [] : [`(arrived < $${parameters.push(before)}::bigint) IS NOT FALSE`]),
  ].join(" AND ");
  const { coders, keys } = keysOf(by, filters, parameters);
  const names = keys.map((_, at) => `key_${at}`);
  const rows = (await sql.unsafe(
    sumsQuery(names, `SELECT *, ${[...keys, ...buckets].join(", ")} FROM dragoman.requests WHERE ${condition}`),
    parameters,
  )) as Row[];
  return rows.map((row) => ({
    values: coders.map(({ valueFor }, at) => valueFor(row[`key_${at}`] ?? null)),
    aggregate: aggregateOf(row),
  }));
}

/** @param parameters Those of the dimensions are added. @returns Also an expression for each dimension, `… AS key_0`. */
function keysOf(by: readonly Dimension[], filters: { from_ms: number; to_ms: number }, parameters: unknown[]) {
  const coders = by.map((dimension) => coderOf(dimension, filters));
  const keys = coders.map(({ expression, parameter }, at) => {
    const place = parameter === undefined ? "" : `$${parameters.push(parameter)}`;
    return `${expression(place)} AS key_${at}`;
  });
  return { coders, keys };
}

const buckets = durations.map((name, at) => `${bucketSql(name)} AS bucket_${at}`);

/** One row for each group: thousands of groups have a hundred buckets each. @param matching Selects rows with keys and buckets. */
function sumsQuery(names: readonly string[], matching: string): string {
  // One set for each duration.
  const sets = durations.map((_, at) => `(${[...names, `bucket_${at}`].join(", ")})`).join(", ");
  return `SELECT ${[...names, ...sumsOfGroups].join(", ")} FROM (
       SELECT ${[...names, ...durations.map((_, at) => `bucket_${at}`), ...sumsOfBuckets].join(", ")},
         grouping(bucket_0) AS which
       FROM (${matching}) AS matching
       GROUP BY GROUPING SETS (${sets})) AS counted${names.length > 0 ? ` GROUP BY ${names.join(", ")}` : " HAVING count(*) > 0"}`;
}

/**
 * The groups that come first, and all others as one: of tens of thousands, those that nobody is shown get no histograms.
 * @param filters With both times.
 * @param most How many groups.
 */
export async function addUpFirst(
  sql: SQL,
  filters: Filters & { from_ms: number; to_ms: number },
  by: readonly Dimension[],
  most: number,
): Promise<{ groups: ChunkGroup[]; others: Aggregate | undefined }> {
  const { sql: passes, values } = conditionsOf(filters);
  const parameters = [...values];
  const { coders, keys } = keysOf(by, filters, parameters);
  const names = keys.map((_, at) => `key_${at}`);
  const id = `jsonb_build_array(${names.join(", ")})::text`;
  const matching = `SELECT *, ${keys.join(", ")} FROM dragoman.requests WHERE ${passes}`;
  const times = by.flatMap((dimension, at) => (dimension === "hour" || dimension === "day" ? [`key_${at} DESC`] : []));
  const first = (await sql.unsafe(
    `SELECT ${id} AS id, ${names.join(", ")} FROM (${matching}) AS matching GROUP BY ${names.join(", ")}
       ORDER BY ${[...times, "count(*) DESC", ...names].join(", ")} LIMIT ${most}`,
    parameters,
  )) as (Row & { id: string })[];
  const valuesOf = new Map(
    first.map((row) => [row.id, coders.map(({ valueFor }, at) => valueFor(row[`key_${at}`] ?? null))]),
  );
  const ids = `$${parameters.push(JSON.stringify([...valuesOf.keys()]))}`;
  const rows = (await sql.unsafe(
    sumsQuery(
      ["chosen"],
      `SELECT each.*, chosen, ${buckets.join(", ")} FROM (${matching}) AS each
         LEFT JOIN jsonb_array_elements_text(${ids}::text::jsonb) AS first (chosen) ON chosen = ${id}`,
    ),
    parameters,
  )) as (Row & { chosen: string | null })[];
  const rest = rows.find(({ chosen }) => chosen === null);
  return {
    groups: rows.flatMap((row) => {
      const values = row.chosen === null ? undefined : valuesOf.get(row.chosen);
      return values ? [{ values, aggregate: aggregateOf(row) }] : [];
    }),
    others: rest && aggregateOf(rest),
  };
}

function aggregateOf(row: Row): Aggregate {
  const aggregate = openAggregate();
  const { counts, sums: total, buckets } = aggregate;
  const numbers = numbersIn(row.sums);
  const number = (name: string) => numbers[sumNames.indexOf(name)]!;
  aggregate.errors = number("errors");
  counts[0] = number("rows");
  const first = sumNames.length - 2 * columns.length;
  for (let at = 0; at < columns.length; at += 1) {
    counts[1 + at] = numbers[first + 2 * at]!;
    total[at] = numbers[first + 2 * at + 1]!;
  }
  total[sumPlaces.cached] = number("cached");
  total[sumPlaces.cacheable] = number("cacheable");
  total[sumPlaces.first] = number("first_at");
  total[sumPlaces.last] = number("last_at");
  for (const which of durations.keys()) {
    const pairs = numbersIn(row[bucketsOf(which)]);
    for (let at = 0; at < pairs.length; at += 2) buckets[which * bucketCount + pairs[at]!] = pairs[at + 1]!;
  }
  return aggregate;
}

const numbersIn = (text: unknown): number[] => String(text).split(" ").map(Number);

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
