/** What rows of the history say by themselves: for tests of the answers that a database gives. */
import { expect } from "bun:test";
import { type Entry, nameColumns } from "../../src/books/history/entry";
import type { Filters } from "../../src/books/history/filters";
import { type durations, type Measure, measureNames, type Totals } from "../../src/books/history/totals";
import { costUnitNames } from "../../src/lib/money";

/** Whether a row passes filters. */
export const passes = (row: Entry, filters: Filters): boolean =>
  nameColumns.every((name) => filters[name] === undefined || row[name] === filters[name]) &&
  (filters.stream === undefined || (row.stream === 1) === filters.stream) &&
  (filters.status === undefined || row.http_status === filters.status) &&
  (filters.status_class === undefined || Math.floor(row.http_status / 100) === filters.status_class) &&
  (filters.has_error === undefined || (row.error_type !== null) === filters.has_error) &&
  (filters.has_prompt === undefined || (row.prompt !== null) === filters.has_prompt) &&
  row.started_at_ms >= (filters.from_ms ?? 0) &&
  row.started_at_ms <= (filters.to_ms ?? Number.POSITIVE_INFINITY);

/** What can be compared exactly, in one order. */
function plainTotals(rows: readonly Entry[]): Record<string, unknown> {
  const sum = (name: Measure) => {
    const known = rows.map((row) => row[name]).filter((value) => value !== null);
    return known.length === 0 && rows.length > 0 ? null : known.reduce((all, value) => all + value, 0);
  };
  const costIn = (unit: string) => {
    const billed = rows.filter((row) => row.cost_unit === unit && row.cost !== null);
    return billed.length === 0 ? [] : [[unit, billed.reduce((all, row) => all + row.cost!, 0)]];
  };
  const starts = rows.map(({ started_at_ms }) => started_at_ms);
  const both = rows.filter((row) => row.input_tokens !== null && row.cached_tokens !== null);
  const [cached, input] = [
    both.reduce((all, row) => all + row.cached_tokens!, 0),
    both.reduce((all, row) => all + row.input_tokens!, 0),
  ];
  const average = (name: (typeof durations)[number]) => {
    const known = rows.map((row) => row[name]).filter((value) => value !== null);
    return known.length === 0 ? null : Math.round(known.reduce((all, value) => all + value, 0) / known.length);
  };
  const failed = rows.filter(({ error_type }) => error_type !== null).length;
  return {
    request_count: rows.length,
    error_count: failed,
    success_rate: rows.length === 0 ? null : (rows.length - failed) / rows.length,
    ...Object.fromEntries(measureNames.map((name) => [name, sum(name)])),
    unknown: Object.fromEntries(
      [...measureNames, "cost" as const].map((name) => [name, rows.filter((row) => row[name] === null).length]),
    ),
    cost: Object.fromEntries(costUnitNames.flatMap(costIn)),
    cost_at_least: rows.some((row) => row.cost_at_least === 1 || row.cost === null),
    cacheable: { input_tokens: input, cached_tokens: cached },
    cached_share: input > 0 ? cached / input : null,
    avg_duration_ms: average("duration_ms"),
    avg_first_byte_ms: average("first_byte_ms"),
    first_at_ms: rows.length === 0 ? null : Math.min(...starts),
    last_at_ms: rows.length === 0 ? null : Math.max(...starts),
  };
}

/** Compares totals with what the rows themselves come to. Percentiles are at most 5 % off. */
export function expectTotals(totals: Totals, rows: readonly Entry[]): void {
  const expected = plainTotals(rows);
  const found: Record<string, unknown> = Object.fromEntries(
    Object.keys(expected).map((name) => [name, totals[name as keyof Totals]]),
  );
  expect(found).toEqual(expected);
  for (const [which, p50, p95] of [
    ["duration_ms", totals.p50_duration_ms, totals.p95_duration_ms],
    ["first_byte_ms", totals.p50_first_byte_ms, totals.p95_first_byte_ms],
  ] as const) {
    const sorted = rows
      .map((row) => row[which])
      .filter((value) => value !== null)
      .sort((a, b) => a - b);
    for (const [share, value] of [
      [0.5, p50],
      [0.95, p95],
    ] as const) {
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? null;
      if (exact === null || value === null) expect(value).toBe(exact);
      else expect(Math.abs(value - exact)).toBeLessThanOrEqual(0.05 * exact);
    }
  }
}
