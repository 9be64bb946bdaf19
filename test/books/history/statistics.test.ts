/** Rows: what many exchanges come to: numbers that can be checked by hand. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { nameColumns } from "../../../src/books/history/entry";
import type { Filters } from "../../../src/books/history/filters";
import {
  type Dimension,
  type Entry,
  type LocalHistory,
  openHistory,
  type Totals,
} from "../../../src/books/history/history";
import { entry, noon } from "../../support/history-rows";
import { temporaryFolder } from "../../support/temporary-folder";

const hour = 3_600_000;
const day = 24 * hour;

let folder: string;
let path: string;
let history: LocalHistory;
let days: number;

function open(): LocalHistory {
  return openHistory(path, { retentionDays: () => days, maxRows: () => 300_000, warn: () => {}, now: () => noon });
}

function fill(entries: Partial<Entry>[]): void {
  for (const differing of entries) history.add(entry(differing));
  expect(history.flush()).toBe(true);
}

describe("totals", () => {
  beforeEach(begin);
  afterEach(end);

  test("the totals of no exchanges are nothing, and have no rate or time", async () => {
    expect(await history.totals({})).toEqual({
      request_count: 0,
      error_count: 0,
      success_rate: null,
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      cache_lost_cost: 0,
      cost: {},
      unknown: {
        input_tokens: 0,
        output_tokens: 0,
        cached_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        cache_lost_cost: 0,
        cost: 0,
      },
      cost_at_least: false,
      cacheable: { input_tokens: 0, cached_tokens: 0 },
      cached_share: null,
      avg_duration_ms: null,
      p50_duration_ms: null,
      p95_duration_ms: null,
      avg_first_byte_ms: null,
      p50_first_byte_ms: null,
      p95_first_byte_ms: null,
      first_at_ms: null,
      last_at_ms: null,
    });
  });

  test("add what is known, and count what is not", async () => {
    const failed = { http_status: 502, error_type: "upstream", input_tokens: null, output_tokens: null };
    fill([
      {
        duration_ms: 100,
        first_byte_ms: 10,
        input_tokens: 1_000,
        cached_tokens: 750,
        cost: 3,
        started_at_ms: 5,
      },
      {
        duration_ms: 200,
        first_byte_ms: 30,
        input_tokens: 500,
        cached_tokens: null,
        ...{ cost: 1e9, cost_unit: "premium" },
        started_at_ms: 9,
      },
      { duration_ms: 1_500, first_byte_ms: null, ...failed, cost: null, started_at_ms: 7 },
      {
        duration_ms: 900,
        first_byte_ms: 50,
        input_tokens: 1_000,
        cached_tokens: 0,
        cost: 0.66e9,
        cost_unit: "premium",
      },
    ]);
    const expected = {
      request_count: 4,
      error_count: 1,
      success_rate: 0.75,
      input_tokens: 2_500,
      output_tokens: 60,
      cached_tokens: 750,
      cache_write_tokens: null,
      reasoning_tokens: null,
      cache_lost_cost: null,
      cost: { credits: 3, premium: 1.66e9 },
      unknown: {
        input_tokens: 1,
        output_tokens: 1,
        cached_tokens: 2,
        cache_write_tokens: 4,
        reasoning_tokens: 4,
        cache_lost_cost: 4,
        cost: 1,
      },
      cost_at_least: true,
      cacheable: { input_tokens: 2_000, cached_tokens: 750 },
      cached_share: 0.375,
      avg_duration_ms: 675,
      p50_duration_ms: 200,
      p95_duration_ms: 1_500,
      avg_first_byte_ms: 30,
      p50_first_byte_ms: 30,
      p95_first_byte_ms: 50,
      first_at_ms: 5,
      last_at_ms: noon,
    };
    expect(nearly(await history.totals({ to_ms: noon }), expected)).toEqual(expected);
  });

  test("know the value that half, and 95 of 100, do not exceed", async () => {
    const mixed = Array.from({ length: 100 }, (_, index) => ((index * 37) % 100) + 1);
    fill(mixed.map((duration_ms) => ({ duration_ms, first_byte_ms: 7 })));
    const expected = {
      avg_duration_ms: 51,
      p50_duration_ms: 50,
      p95_duration_ms: 95,
      p50_first_byte_ms: 7,
      p95_first_byte_ms: 7,
    };
    expect(nearly(await history.totals({}), expected)).toMatchObject(expected);
  });

  const failed: Partial<Entry> = { http_status: 502, error_type: "upstream" };
  test.each<[Filters, Partial<Entry>, Partial<Entry>]>([
    ...nameColumns.map(
      (name) => [{ [name]: "x" }, { [name]: "x" }, { [name]: "y" }] as [Filters, Partial<Entry>, Partial<Entry>],
    ),
    [{ account_id: null }, { account_id: null }, {}],
    [{ initiator: "x' OR 1=1 --" }, { initiator: "x' OR 1=1 --" }, {}],
    [{ stream: false }, { stream: 0 }, {}],
    [{ stream: true }, {}, { stream: 0 }],
    [{ status: 429 }, { http_status: 429 }, {}],
    [{ status_class: 4 }, { http_status: 499 }, { http_status: 500 }],
    [{ has_error: true }, failed, {}],
    [{ has_error: false }, {}, failed],
    [{ from_ms: noon }, { started_at_ms: noon }, { started_at_ms: noon - 1 }],
    [{ to_ms: noon }, { started_at_ms: noon }, { started_at_ms: noon + 1 }],
    [{ account_id: "nobody" }, { account_id: "nobody" }, { account_id: "bob" }],
    [
      { account_id: "bob", has_error: true, status_class: 5, stream: true, from_ms: noon, to_ms: noon },
      { ...failed, account_id: "bob" },
      { ...failed, account_id: "bob", started_at_ms: noon + 1 },
    ],
  ])("narrowed to %j are of the same exchanges as the list", async (filters, wanted, unwanted) => {
    fill([wanted, unwanted, wanted, unwanted, unwanted]);
    expect((await history.list(filters, 50)).items.map(({ id }) => id)).toEqual([3, 1]);
    expect((await history.totals(filters)).request_count).toBe(2);
    expect((await history.list({ ...filters, path: "/none" }, 50)).items).toEqual([]);
    expect((await history.totals({ ...filters, path: "/none" })).request_count).toBe(0);
  });

  test("follow what is added and what is pruned", async () => {
    const old = { started_at_ms: noon - 10 * day };
    fill(Array.from({ length: 9_000 }, (_, index) => (index % 3 === 0 ? old : {})));
    expect((await history.totals({})).request_count).toBe(9_000);
    fill([{ client_model: "late" }]);
    expect((await history.totals({})).request_count).toBe(9_001);
    expect((await history.totals({ client_model: "late" })).request_count).toBe(1);
    days = 5;
    await history.prune();
    expect((await history.totals({})).request_count).toBe(6_001);
    expect((await history.statistics({}, ["client_model"])).groups.map((group) => group.request_count)).toEqual([
      6_000, 1,
    ]);
  });

  test("follow a second process, and a file that was replaced", async () => {
    fill([{}, {}]);
    expect((await history.totals({})).request_count).toBe(2);
    const other = open();
    other.add(entry());
    other.flush();
    other.close();
    expect((await history.totals({})).request_count).toBe(3);
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
    fill([{}]);
    expect((await history.totals({})).request_count).toBe(1);
  });
});

describe("groups", () => {
  beforeEach(begin);
  afterEach(end);
  const zone = process.env.TZ;
  afterEach(() => {
    process.env.TZ = zone ?? "UTC";
  });

  const countsBy = async (by: Dimension[], filters: Filters = {}) =>
    (await history.statistics(filters, by)).groups.map(({ key, request_count }) => [
      ...Object.values(key),
      request_count,
    ]);

  test("groups by names have the most requests first, and what has no name is a group too", async () => {
    fill([
      { upstream_model: "gpt-5", account_id: "ada" },
      { upstream_model: "gpt-5", account_id: "bob" },
      { upstream_model: "gpt-5", account_id: "ada" },
      { upstream_model: null, account_id: null, http_status: 404, error_type: "model_not_found" },
    ]);
    expect(await countsBy(["upstream_model"])).toEqual([
      ["gpt-5", 3],
      [null, 1],
    ]);
    expect(await countsBy(["account_id", "upstream_model"])).toEqual([
      ["ada", "gpt-5", 2],
      ["bob", "gpt-5", 1],
      [null, null, 1],
    ]);
    expect(await countsBy(["status_class"], { account_id: "ada" })).toEqual([["2xx", 2]]);
  });

  test("groups by time have the newest first, in days and hours of this machine's clock", async () => {
    process.env.TZ = "Asia/Kolkata"; // 5½ hours ahead
    const at = (text: string) => ({ started_at_ms: Date.parse(text) });
    fill([
      at("2026-01-01T18:29:59Z"),
      at("2026-01-01T18:30:00Z"),
      at("2026-01-02T11:29:00Z"),
      at("2026-01-02T11:31:00Z"),
    ]);
    expect(await countsBy(["day"])).toEqual([
      ["2026-01-02", 3],
      ["2026-01-01", 1],
    ]);
    expect(await countsBy(["hour", "path"])).toEqual([
      ["2026-01-02T17:00+05:30", "/v1/messages", 1],
      ["2026-01-02T16:00+05:30", "/v1/messages", 1],
      ["2026-01-02T00:00+05:30", "/v1/messages", 1],
      ["2026-01-01T23:00+05:30", "/v1/messages", 1],
    ]);
  });

  test("know the night in which an hour comes twice", async () => {
    process.env.TZ = "Europe/Berlin";
    const first = Date.parse("2026-10-25T00:30:00Z");
    fill([{ started_at_ms: first }, { started_at_ms: first + hour }, { started_at_ms: first + 2 * hour }]);
    expect(await countsBy(["hour"])).toEqual([
      ["2026-10-25T03:00+01:00", 1],
      ["2026-10-25T02:00+01:00", 1],
      ["2026-10-25T02:00+02:00", 1],
    ]);
    const [group] = (await history.statistics({}, ["day"])).groups;
    expect(group!.filters.to_ms! - group!.filters.from_ms! + 1).toBe(25 * hour);
  });

  test.each<[string, string[]]>([
    // Half an hour is left out, or comes twice.
    ["Australia/Lord_Howe", ["2026-10-03T13:00:00Z", "2026-04-04T13:00:00Z"]],
    ["Asia/Kathmandu", ["2026-10-03T13:00:00Z", "2026-04-04T13:00:00Z"]],
    ["Europe/Berlin", ["2026-03-28T23:00:00Z", "2026-10-24T23:00:00Z"]],
    ["Africa/Cairo", ["2026-04-23T19:00:00Z", "2026-10-29T19:00:00Z"]],
  ])("groups of hours hold what their filters find, in %s when the clock is set", async (name, starts) => {
    process.env.TZ = name;
    for (const start of starts)
      fill(Array.from({ length: 8 * 12 }, (_, at) => ({ started_at_ms: Date.parse(start) + at * 5 * 60_000 })));
    for (const by of ["hour", "day"] as const) {
      const { groups, totals } = await history.statistics({}, [by]);
      expect(groups.reduce((sum, group) => sum + group.request_count, 0)).toBe(totals.request_count);
      for (const { key, filters, request_count } of groups)
        expect([key, (await history.statistics(filters, [])).totals.request_count]).toEqual([key, request_count]);
    }
  });

  test("each name the filters that lead to its own exchanges, and add up to the totals", async () => {
    const names = ["ada", "bob", null];
    fill(
      Array.from({ length: 300 }, (_, index) => ({
        account_id: names[index % 3]!,
        http_status: index % 7 ? 200 : 429,
        started_at_ms: noon - index * 20 * 60_000,
      })),
    );
    const filters = { from_ms: noon - 3 * day, to_ms: noon - hour };
    for (const by of [
      ["hour", "account_id"],
      ["day", "status_class"],
    ] as Dimension[][]) {
      const { groups, totals, others } = await history.statistics(filters, by);
      for (const group of groups)
        expect((await history.list(group.filters, 200)).items).toHaveLength(group.request_count);
      expect(groups.reduce((sum, { request_count }) => sum + request_count, 0)).toBe(totals.request_count);
      expect([totals.request_count, others]).toEqual([214, null]);
    }
  });

  test("are 5,000 at most; the others are one sum", async () => {
    fill(Array.from({ length: 6_000 }, (_, index) => ({ client_model: `made-up-${index}`, input_tokens: 1 })));
    const { groups, others, totals } = await history.statistics({}, ["client_model"]);
    expect([groups.length, others!.request_count, others!.input_tokens]).toEqual([5_000, 1_000, 1_000]);
    expect([totals.request_count, totals.input_tokens]).toEqual([6_000, 6_000]);
    expect(nearly(totals, { p95_duration_ms: 1_234 }).p95_duration_ms).toBe(1_234);
  });
});

/** The totals, with each percentile that is at most 5 % off, as they are read off buckets, put right. */
function nearly(totals: Totals, expected: Partial<Totals>): Totals {
  const put = { ...totals };
  for (const name of ["p50_duration_ms", "p95_duration_ms", "p50_first_byte_ms", "p95_first_byte_ms"] as const) {
    const [found, right] = [totals[name], expected[name] ?? null];
    if (found !== null && right !== null && Math.abs(found - right) <= 0.05 * right) put[name] = right;
  }
  return put;
}

function begin(): void {
  folder = temporaryFolder();
  path = join(folder, "admin.sqlite");
  days = 14;
  history = open();
}

function end(): void {
  history.close();
}
