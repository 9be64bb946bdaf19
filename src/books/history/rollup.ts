/**
 * The rollup: what the requests of an hour, and of a day, add up to, in one table for all groupings. A period is added up when
 * it is over, and whatever changes its rows makes that undone: they are then read one by one, until it is added up again.
 */
import { hourMs } from "../../lib/format";
import { costUnitNames } from "../../lib/money";
import { type Dimension, isName } from "./dimensions";
import { type NameColumn, nameColumns } from "./entry";
import { type Filters, filteredNames } from "./filters";
import type { Source, SqlDialect } from "./sql";
import { durations, measureNames } from "./totals";

/**
 * The groupings that are added up: those that pages ask for, the smaller the better. A question takes the first that has
 * all its names; one with other names is answered from the rows.
 */
export const views: readonly (readonly NameColumn[])[] = [
  ["upstream_model"],
  ["client_name", "upstream_model"],
  ["cache_miss", "client_name", "upstream_model"],
  ["kind", "agent_type", "upstream_model"],
  ["member", "key_name"],
  ["account_key", "account_id"],
  ["session", "upstream_model"],
  ["project", "upstream_model"],
  nameColumns.filter((name) => name !== "session" && name !== "prompt"),
];

/** The lengths of the periods in hours: those of UTC, and its days. */
export const periodLengths = [1, 24] as const;
export type PeriodLength = (typeof periodLengths)[number];

/** The number of the view that has all names of a question. */
export function viewOf(filters: Filters, by: readonly Dimension[]): number | undefined {
  const names = [...filteredNames(filters), ...by.filter(isName)];
  const found = views.findIndex((view) => names.every((name) => view.includes(name)));
  return found < 0 ? undefined : found;
}

/** The number of the view that has the most names of filters, and these. */
export function nearestView(filters: Filters): { view: number; names: NameColumn[] } {
  const covered = views.map((view) => filteredNames(filters).filter((name) => view.includes(name)));
  const most = Math.max(...covered.map(({ length }) => length));
  const view = covered.findIndex(({ length }) => length === most);
  return { view, names: covered[view]! };
}

/** One sum of a cell: its column, how it is made of rows, and how cells are added. */
interface SumColumn {
  name: string;
  ofRows(dialect: SqlDialect): string;
  added: "sum" | "min" | "max" | "join";
}

const sum = (name: string, ofRows: SumColumn["ofRows"]): SumColumn => ({ name, ofRows, added: "sum" });
/** What is added up of rows: its name in the sums, and its value in a row. */
const added: readonly (readonly [name: string, value: string])[] = [
  ...[...measureNames, ...durations].map((name) => [name, name] as const),
  ...costUnitNames.map((unit) => [unit, `CASE WHEN cost_unit = '${unit}' THEN cost END`] as const),
];

export const sumColumns: readonly SumColumn[] = [
  sum("requests", () => "count(*)"),
  sum("errors", () => "count(error_type)"),
  ...added.flatMap(([name, value]) => [
    sum(`${name}_count`, () => `count(${value})`),
    sum(`${name}_sum`, () => `coalesce(sum(${value}), 0)`),
  ]),
  sum("open_cost", () => "sum(cost_at_least)"),
  // Where both are known.
  sum("both_cached", () => "coalesce(sum(CASE WHEN input_tokens IS NOT NULL THEN cached_tokens END), 0)"),
  sum("both_input", () => "coalesce(sum(CASE WHEN cached_tokens IS NOT NULL THEN input_tokens END), 0)"),
  { name: "first_at_ms", ofRows: () => "min(started_at_ms)", added: "min" },
  { name: "last_at_ms", ofRows: () => "max(started_at_ms)", added: "max" },
  { name: "first_id", ofRows: () => "min(id)", added: "min" },
  { name: "last_id", ofRows: () => "max(id)", added: "max" },
  ...durations.map(
    (name): SumColumn => ({ name: `${name}_marks`, ofRows: ({ mark, join }) => join(mark(name)), added: "join" }),
  ),
];

/** How the sums of several cells, or of sums of cells, are added. */
export const addedSums = (dialect: SqlDialect, columns: readonly SumColumn[] = sumColumns): string =>
  columns
    .map(({ name, added }) => `${added === "join" ? dialect.join(name) : `${added}(${name})`} AS ${name}`)
    .join(", ");

export const sumsOfRows = (dialect: SqlDialect, columns: readonly SumColumn[] = sumColumns): string =>
  columns.map(({ name, ofRows }) => `${ofRows(dialect)} AS ${name}`).join(", ");

/** What every cell has beside its names and sums. */
const cellKeys = {
  length: "smallint",
  hour: "bigint",
  view: "smallint",
  stream: "smallint",
  http_status: "bigint",
  failed: "smallint",
  prompted: "smallint",
};

/** The columns of the table, with types that both databases know. */
export const rollupColumns = (): string[] => [
  ...Object.entries(cellKeys).map(([name, type]) => `${name} ${type} NOT NULL`),
  ...nameColumns.map((name) => `${name} text`),
  ...sumColumns.map(({ name, added }) => `${name} ${added === "join" ? "text" : "bigint NOT NULL"}`),
];

/** Statements that add the cells of a period to a table that has the columns of the rollup: one for each view. */
export const cellInserts = (dialect: SqlDialect, table: string, hour: number, length: PeriodLength): string[] =>
  views.map((_, view) => `INSERT INTO ${table} (${cellColumns(view)}) ${cellsOf(dialect, view, hour, length)}`);

/** The cells of an hour in one view, made of its rows; or of a day, made of those of its hours. A SELECT of `cellColumns`. */
function cellsOf(dialect: SqlDialect, view: number, hour: number, length: PeriodLength): string {
  const isHour = length === 1;
  const keys = [
    "stream",
    "http_status",
    isHour ? "CASE WHEN error_type IS NULL THEN 0 ELSE 1 END" : "failed",
    isHour ? "CASE WHEN prompt IS NULL THEN 0 ELSE 1 END" : "prompted",
    ...views[view]!,
  ];
  const [sums, from] = isHour
    ? [
        sumsOfRows(dialect),
        `${dialect.tables.requests} WHERE started_at_ms BETWEEN ${hour * hourMs} AND ${(hour + 1) * hourMs - 1}`,
      ]
    : [
        addedSums(dialect),
        `${dialect.tables.rollup} WHERE length = 1 AND view = ${view} AND hour BETWEEN ${hour} AND ${hour + length - 1}`,
      ];
  return `SELECT ${length} AS length, ${hour} AS hour, ${view} AS view, ${keys.join(", ")}, ${sums} FROM ${from} GROUP BY ${keys.join(", ")}`;
}

/** The columns that `cellsOf` fills, in its order. */
const cellColumns = (view: number): string =>
  [...Object.keys(cellKeys), ...views[view]!, ...sumColumns.map(({ name }) => name)].join(", ");

/**
 * The periods that have rows, ended before a time (Unix ms) and are not added up, the newest first; of days, those without
 * such an hour. Reads the index of times hour by hour.
 */
export async function periodsToAddUp(
  { dialect, rows }: Source,
  before: number,
  length: PeriodLength,
): Promise<number[]> {
  const { requests, periods } = dialect.tables;
  const hours = await rows<{ hour: number; complete: number }>(
    `WITH RECURSIVE hours (hour) AS (
        SELECT min(started_at_ms) / ${hourMs} FROM ${requests} UNION ALL
        SELECT (SELECT min(started_at_ms) / ${hourMs} FROM ${requests} WHERE started_at_ms >= (hours.hour + 1) * ${hourMs})
          FROM hours WHERE hours.hour IS NOT NULL)
      SELECT ${dialect.number("hour")} AS hour, CASE WHEN EXISTS (SELECT 1 FROM ${periods} AS period
          WHERE period.hour = hours.hour AND length = 1 AND ${dialect.isComplete}) THEN 1 ELSE 0 END AS complete
        FROM hours WHERE hour IS NOT NULL ORDER BY hour DESC`,
    [],
  );
  const left = hours.filter(({ complete }) => complete === 0).map(({ hour }) => hour);
  if (length === 1) return left.filter((hour) => (hour + 1) * hourMs <= before);
  const dayOf = (hour: number) => Math.floor(hour / 24) * 24;
  const done = await rows<{ hour: number }>(
    `SELECT ${dialect.number("hour")} AS hour FROM ${periods} WHERE length = 24 AND ${dialect.isComplete}`,
    [],
  );
  const others = new Set([...left.map(dayOf), ...done.map(({ hour }) => hour)]);
  const days = new Set(hours.map(({ hour }) => dayOf(hour)));
  return [...days].filter((day) => (day + 24) * hourMs <= before && !others.has(day));
}

/** Whether the cells of a day's hours are those of all its rows: some may have come since the hours were added up. */
export async function hasWholeHours({ dialect, rows }: Source, day: number): Promise<boolean> {
  const { requests, rollup, periods } = dialect.tables;
  const hours = `BETWEEN ${day} AND ${day + 23}`;
  const [row] = await rows<{ whole: number }>(
    `SELECT CASE WHEN (SELECT count(*) FROM ${requests} WHERE started_at_ms BETWEEN ${day * hourMs} AND ${(day + 24) * hourMs - 1})
        = (SELECT coalesce(sum(requests), 0) FROM ${rollup} AS cell JOIN ${periods} AS period
            ON period.length = cell.length AND period.hour = cell.hour AND ${dialect.isComplete}
          WHERE cell.length = 1 AND view = 0 AND cell.hour ${hours}) THEN 1 ELSE 0 END AS whole`,
    [],
  );
  return row?.whole === 1;
}
