/** Rows: what many exchanges come to: numbers that can be checked by hand. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { nameColumns } from "../../../src/books/history/entry";
import type { Filters } from "../../../src/books/history/filters";
import type { Dimension, Entry, LocalHistory } from "../../../src/books/history/history";
import { entry, noon } from "../../support/history-rows";
import { eachAnew, fill as fillIn } from "./bench";

const hour = 3_600_000;

const here = eachAnew();
let history: LocalHistory;
beforeEach(() => {
  history = here.open();
});
const fill = (rows: Partial<Entry>[]) => fillIn(history, rows);

describe("totals", () => {
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

  test("follow a second process, and a file that was replaced", async () => {
    fill([{}, {}]);
    expect((await history.totals({})).request_count).toBe(2);
    const other = here.open();
    other.add(entry());
    other.flush();
    other.close();
    expect((await history.totals({})).request_count).toBe(3);
    for (const end of ["", "-wal", "-shm"]) rmSync(here.path + end, { force: true });
    fill([{}]);
    expect((await history.totals({})).request_count).toBe(1);
  });
});

describe("groups", () => {
  const zone = process.env.TZ;
  afterEach(() => {
    process.env.TZ = zone ?? "UTC";
  });

  const countsBy = async (by: Dimension[], filters: Filters = {}) =>
    (await history.statistics(filters, by)).groups.map(({ key, request_count }) => [
      ...Object.values(key),
      request_count,
    ]);

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

  test("are 5,000 at most; the others are one sum", async () => {
    fill(Array.from({ length: 6_000 }, (_, index) => ({ client_model: `made-up-${index}`, input_tokens: 1 })));
    const { groups, others, totals } = await history.statistics({}, ["client_model"]);
    expect([groups.length, others!.request_count, others!.input_tokens]).toEqual([5_000, 1_000, 1_000]);
    expect([totals.request_count, totals.input_tokens]).toEqual([6_000, 6_000]);
    expect(Math.abs(totals.p95_duration_ms! - 1_234)).toBeLessThan(0.05 * 1_234);
  });
});
