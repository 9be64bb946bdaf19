/**
 * Scenario: statistics are what the plain rows add up to, whatever came when, by which server, and whatever was added
 * up ahead.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import type { Dimension } from "../../src/books/history/dimensions";
import type { Filters } from "../../src/books/history/filters";
import { pageOf } from "../../src/books/history/page";
import type { Source } from "../../src/books/history/sql";
import { type Group, largestSessionsOf, type Statistics, statisticsOf } from "../../src/books/history/statistics";
import { dayMs, hourMs } from "../../src/lib/format";
import { Postgres } from "../../src/team/connection";
import { addPartitions, insertRows, removeOldDays } from "../../src/team/requests";
import { migrate } from "../../src/team/schema";
import { settings } from "../../src/team/settings";
import { addUpPeriods, atOneMoment, dialect } from "../../src/team/statistics";
import { entry, noon } from "../support/history-rows";
import fc, { triesOf } from "../support/random";
import { describeWithDatabases } from "../support/shared-postgres";
import { until } from "../support/until";

const minuteMs = 60_000;

describeWithDatabases("statistics in Postgres", (server) => {
  const servers: Postgres[] = [];
  let url: string;
  beforeAll(async () => {
    url = await server.database();
    for (let at = 0; at < 2; at += 1) servers.push(new Postgres({ url }));
    await migrate(servers[0]!);
  });
  afterAll(async () => {
    for (const postgres of servers) await postgres.close();
  });

  /** A connection that is no server's. */
  const connected = () => new SQL(url, { max: 1, connection: settings });

  const rowAt = (started_at_ms: number, seed = 0) =>
    entry({
      request_id: Bun.randomUUIDv7(),
      started_at_ms,
      member: ["anna", "ben", null][seed % 3]!,
      upstream_model: ["gpt-5", "claude-sonnet-4.5"][seed % 2]!,
      duration_ms: (seed * 37) % 9_000,
      input_tokens: seed % 5 === 0 ? null : seed,
      session: seed % 4 === 0 ? null : `session ${seed % 11}`,
    });
  const rowsAgo = (now: number, ago: [minutes: number, seed: number][]) =>
    ago.map(([minutes, seed]) => rowAt(now - minutes * minuteMs, seed));
  const empty = () =>
    servers[0]!.ask((sql) =>
      sql.unsafe("DELETE FROM dragoman.requests; TRUNCATE dragoman.rollup, dragoman.rollup_periods").simple(),
    );
  const periods = async (length: number) =>
    (
      await servers[0]!.ask(
        (sql) => sql`SELECT hour::float8 AS hour FROM dragoman.rollup_periods WHERE length = ${length} ORDER BY hour`,
      )
    ).map(({ hour }: { hour: number }) => hour);

  const asked = (postgres: Postgres, filters: Filters, by: Dimension[]): Promise<Statistics> =>
    atOneMoment(postgres, (source) => statisticsOf(source, filters, by));
  /** As if nothing were added up. */
  const ofRows = (postgres: Postgres, filters: Filters, by: Dimension[]): Promise<Statistics> =>
    atOneMoment(postgres, (source) =>
      statisticsOf({ ...source, dialect: { ...dialect, isComplete: "false" } }, filters, by),
    );
  const named = (groups: readonly Group[]) =>
    Object.fromEntries(groups.map((group) => [JSON.stringify(group.key), group]));
  async function expectThoseOfRows(postgres: Postgres, filters: Filters, by: Dimension[]): Promise<void> {
    const [given, expected] = [await asked(postgres, filters, by), await ofRows(postgres, filters, by)];
    expect([filters, by, given.totals, named(given.groups)]).toEqual([
      filters,
      by,
      expected.totals,
      named(expected.groups),
    ]);
  }

  type Rows = { server: number; rows: [minutesAgo: number, seed: number][] };
  type Step =
    | ({ do: "store" } & Rows)
    | ({ do: "hold" } & Rows)
    | ({ do: "late" } & Rows)
    | { do: "ask"; server: number; member: boolean; window: number; by: Dimension[] }
    | { do: "wait"; minutes: number }
    | { do: "add up"; server: number }
    | { do: "prune" };
  const rows = (from: number, to: number) =>
    fc.array(fc.tuple(fc.integer({ min: from, max: to }), fc.nat(999)), { minLength: 1, maxLength: 6 });
  const which = fc.nat(1);
  const bys: Dimension[][] = [
    [],
    ["hour"],
    ["day"],
    ["upstream_model"],
    ["day", "member"],
    ["session"],
    ["path", "session"],
  ];
  const ask = fc.record({
    do: fc.constant("ask" as const),
    server: which,
    member: fc.boolean(),
    window: fc.nat(5),
    by: fc.constantFrom(...bys),
  });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("store" as const), server: which, rows: rows(0, 64) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("hold" as const), server: which, rows: rows(0, 3_000) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("late" as const), server: which, rows: rows(76, 3_000) }) },
    { weight: 6, arbitrary: ask },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("wait" as const), minutes: fc.integer({ min: 1, max: 900 }) }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("add up" as const), server: which }) },
    { weight: 1, arbitrary: fc.constant({ do: "prune" as const }) },
  );
  const windows: ((now: number) => Filters)[] = [
    () => ({}),
    (now) => ({ from_ms: now - hourMs }),
    (now) => ({ from_ms: Math.floor(now / hourMs) * hourMs - 23 * hourMs }),
    (now) => ({ from_ms: now - 7 * dayMs, to_ms: now - 20 * minuteMs }),
    (now) => ({ from_ms: now - 95 * minuteMs, to_ms: Math.floor(now / hourMs) * hourMs - 1 }),
    (now) => ({ from_ms: Math.floor(now / dayMs) * dayMs }),
  ];

  async function play(steps: readonly Step[]): Promise<void> {
    await empty();
    let now = noon + 17 * minuteMs;
    let commit: (() => Promise<void>)[] = [];
    const commitAll = async () => {
      for (const each of commit.splice(0)) await each();
    };
    for (const each of steps) {
      const postgres = "server" in each ? servers[each.server]! : servers[0]!;
      if (each.do === "store" || each.do === "late") {
        // Late rows of one hour wait for each other.
        const storing = insertRows(postgres, rowsAgo(now, each.rows), now);
        await commitAll();
        await storing;
      } else if (each.do === "hold") {
        await commitAll();
        commit.push(await held((inside) => insertRows(inside, rowsAgo(now, each.rows), now)));
      } else if (each.do === "wait") {
        // No statement takes minutes.
        await commitAll();
        now += each.minutes * minuteMs;
      } else if (each.do === "add up") {
        // It waits for late rows that are being stored.
        const adding = addUpPeriods(postgres, now, () => true);
        await commitAll();
        await adding;
      } else if (each.do === "prune") {
        await commitAll();
        await removeOldDays(servers[0]!, now - dayMs, Number.POSITIVE_INFINITY);
      } else
        await expectThoseOfRows(
          postgres,
          { ...windows[each.window]!(now), ...(each.member && { member: "anna" }) },
          each.by,
        );
    }
    await commitAll();
    commit = [];
    await addUpPeriods(servers[0]!, now, () => true);
    for (const postgres of servers) for (const by of bys) await expectThoseOfRows(postgres, {}, by);
  }

  /** Stores rows in a transaction that is not committed yet. @returns What commits it. */
  async function held(work: (inside: Postgres) => Promise<void>): Promise<() => Promise<void>> {
    const connection = connected();
    await connection.unsafe("BEGIN").simple();
    const inside = { ask: (question: never) => (question as (sql: unknown) => never)(connection) };
    let end = "COMMIT";
    try {
      await work(inside as unknown as Postgres);
    } catch {
      // The day has no partition yet: such a row is tried again, elsewhere.
      end = "ROLLBACK";
    }
    return async () => {
      await connection.unsafe(end).simple();
      await connection.close();
    };
  }

  test("are those of the rows, while two servers store, add up, ask and prune", async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 50 }), play), {
      numRuns: triesOf(8),
      endOnFailure: true,
    });
  });

  /** A row in each of the last 40 hours. */
  async function addUpHours(postgres: Postgres, now: number): Promise<void> {
    const ago = Array.from({ length: 40 }, (_, at): [number, number] => [at * 60, at]);
    await insertRows(postgres, rowsAgo(now, ago), now);
    await addUpPeriods(postgres, now, () => true);
  }

  test("hours and days that are over are added up, and read in place of their rows", async () => {
    await empty();
    const [postgres, now] = [servers[0]!, noon + 17 * minuteMs];
    const hour = Math.floor(now / hourMs);
    await addUpHours(postgres, now);
    // The next one ended 77 minutes ago: late rows of it may be under way.
    expect(await periods(1)).toEqual(Array.from({ length: 37 }, (_, at) => hour - 39 + at));
    expect(await periods(24)).toEqual([hour - (hour % 24) - 48, hour - (hour % 24) - 24]);
    await postgres.ask((sql) => sql`UPDATE dragoman.rollup SET requests = 10 * requests`);
    expect((await asked(servers[1]!, {}, ["upstream_model"])).totals.request_count).toBe(37 * 10 + 3);
    await removeOldDays(postgres, now - 12 * hourMs, Number.POSITIVE_INFINITY);
    const [{ count }] = await postgres.ask(
      (sql) => sql`SELECT count(*)::int AS count FROM dragoman.rollup WHERE hour < ${hour - (hour % 24)}`,
    );
    expect([await periods(24), count]).toEqual([[], 0]);
  });

  test("of more rows than are kept the oldest days go as a whole, and as many rows as are kept stay", async () => {
    await empty();
    const days = [5, 4, 3, 2, 1, 0].map((ago) => noon - ago * dayMs);
    await addPartitions(servers[0]!, days);
    const counts = [2, 3, 0, 2, 2, 1];
    await insertRows(
      servers[0]!,
      days.flatMap((day, at) => Array.from({ length: counts[at]! }, () => rowAt(day))),
      noon,
    );
    const left = async (maxRows: number) => {
      await removeOldDays(servers[0]!, 0, maxRows);
      const rows = await servers[0]!.ask(
        (sql) => sql`SELECT started_at_ms::float8 AS at FROM dragoman.requests ORDER BY started_at_ms`,
      );
      return days.map((day) => rows.filter(({ at }: { at: number }) => at === day).length);
    };
    expect(await left(9)).toEqual(counts);
    expect(await left(5)).toEqual([0, 0, 0, 2, 2, 1]);
  });

  test("the largest sessions are those with the most input of which the cached part is known, by model", async () => {
    await empty();
    const now = noon + 17 * minuteMs;
    const rows = Array.from({ length: 40 }, (_, at) => ({
      ...rowAt(now - at * hourMs, at),
      session: at < 4 ? null : `session ${at % 9}`,
      input_tokens: at === 4 ? 9_999 : 100 * (at % 9) + at,
      cached_tokens: at % 9 === 8 ? null : 7,
    }));
    await insertRows(servers[0]!, rows, now);
    for (let round = 0; round < 2; round += 1) {
      const filters = { from_ms: now - 20 * hourMs, to_ms: now };
      const found = await atOneMoment(servers[1]!, (source) => largestSessionsOf(source, filters, 2));
      expect([...new Set(found.map(({ key }) => key.session))].sort()).toEqual(["session 4", "session 7"]);
      const { groups } = await asked(servers[1]!, filters, ["session", "upstream_model"]);
      expect(named(groups)).toMatchObject(named(found));
      await addUpPeriods(servers[0]!, now, () => true);
    }
  });

  test("a question that nobody waits for any more is ended in the database", async () => {
    await empty();
    await insertRows(servers[0]!, [rowAt(noon)], noon);
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%dragoman.requests%'";
    const lock = connected();
    await lock.unsafe("BEGIN; LOCK TABLE dragoman.requests").simple();
    const hangUp = new AbortController();
    const question = atOneMoment(servers[1]!, (source) => statisticsOf(source, {}, ["session"]), {
      signal: hangUp.signal,
    }).then(
      () => "answered",
      () => "ended",
    );
    await until(async () => (await server.administer(waiting, url)).length > 0, "the question waits");
    hangUp.abort();
    // While the table is still locked.
    expect(await question).toBe("ended");
    await lock.unsafe("ROLLBACK").simple();
    await lock.close();
  });

  test("a page of rare requests, a member's sums and those by hour read few rows, each hour by an index", async () => {
    await empty();
    const count = 8_000;
    const stepMs = minuteMs / 2;
    const rows = Array.from({ length: count }, (_, at) => ({
      ...rowAt(noon - at * stepMs, at),
      member: `member ${at % 40}`,
      session: `session ${Math.floor(at / 15)}`,
    }));
    for (let at = 0; at < count; at += 2_000) await insertRows(servers[0]!, rows.slice(at, at + 2_000), noon);
    await addUpPeriods(servers[0]!, noon, () => true);
    await servers[0]!.ask((sql) => sql.unsafe("ANALYZE dragoman.requests; ANALYZE dragoman.rollup").simple());
    const read = (ask: (source: Source) => Promise<unknown>) => rowsReadBy(servers[0]!, ask);

    const page = await read((source) => pageOf(source, "each.*", { session: "session 400" }, 50));
    // Those that are not added up yet, and the session's hours.
    expect(page.requests).toBeLessThan(1_000);
    const common = await read((source) => pageOf(source, "each.*", { initiator: "user" }, 20));
    expect([common.requests <= 500, common.rollup]).toEqual([true, 0]);
    const byHour = await read((source) => statisticsOf(source, {}, ["hour", "upstream_model"]));
    expect([byHour.compared, byHour.requests < 500]).toEqual([0, true]);
    const member = await read((source) => statisticsOf(source, { member: "member 1" }, ["client_name"]));
    expect(member.rollup).toBeLessThan(byHour.rollup);
    expect(member.rollup).toBeLessThan(500);
  });
});

/** What Postgres reads for an answer: rows of the two tables, and rows that it compares with pieces of time in vain. */
async function rowsReadBy(postgres: Postgres, ask: (source: Source) => Promise<unknown>) {
  const read = { requests: 0, rollup: 0, compared: 0 };
  const count = (node: PlanNode) => {
    const loops = node["Actual Loops"];
    const name = node["Relation Name"];
    const table = name === "rollup" ? "rollup" : name && /^requests_2/.test(name) ? "requests" : undefined;
    if (table) read[table] += (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * loops;
    read.compared += (node["Rows Removed by Join Filter"] ?? 0) * loops;
    for (const inner of node.Plans ?? []) count(inner);
  };
  await atOneMoment(postgres, (source) =>
    ask({
      ...source,
      rows: async <Row>(text: string, values: readonly unknown[]) => {
        type Explained = { "QUERY PLAN": [{ Plan: PlanNode }] };
        const [plan] = await source.rows<Explained>(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
        count(plan!["QUERY PLAN"][0].Plan);
        return source.rows<Row>(text, values);
      },
    }),
  );
  return read;
}

interface PlanNode {
  "Relation Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Join Filter"?: number;
  Plans?: PlanNode[];
}
