/** What statistics have kept and completed is what the plain rows add up to, whatever came when, and by which server. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dayMs, hourMs } from "../../src/format";
import { addAggregate, openAggregate, totalsOf } from "../../src/history/aggregate";
import { type Dimension, groupKey } from "../../src/history/dimensions";
import type { Filters } from "../../src/history/filters";
import { type Group, usualQuestions } from "../../src/history/statistics";
import { addUp, addUpFirst } from "../../src/team/chunk";
import { connectPostgres, type Postgres } from "../../src/team/connection";
import { insertRows, removeOldDays } from "../../src/team/requests";
import { migrate } from "../../src/team/schema";
import { completeStatistics, largestSessionsIn, statisticsIn } from "../../src/team/statistics";
import { entry, noon } from "../support/history-rows";
import fc from "../support/random";
import { describeWithDatabases } from "../support/shared-postgres";
import { until } from "../support/until";

const minuteMs = 60_000;

describeWithDatabases("statistics in Postgres", (server) => {
  const servers: Postgres[] = [];
  let url: string;
  beforeAll(async () => {
    url = await server.database();
    for (let at = 0; at < 2; at += 1) servers.push(connectPostgres({ url }));
    await migrate(servers[0]!);
  });
  afterAll(async () => {
    for (const postgres of servers) await postgres.close();
  });

  const rowAt = (started_at_ms: number, seed = 0) =>
    entry({
      request_id: Bun.randomUUIDv7(),
      started_at_ms,
      member: ["anna", "ben", null][seed % 3]!,
      upstream_model: ["gpt-5", "claude-sonnet-4.5"][seed % 2]!,
      duration_ms: (seed * 37) % 9_000,
      input_tokens: seed % 5 === 0 ? null : seed,
    });
  const empty = async () => {
    await servers[0]!.sql.unsafe("DELETE FROM dragoman.requests");
    await servers[0]!.sql.unsafe("TRUNCATE dragoman.statistics, dragoman.questions");
  };

  /** Of the plain rows. */
  async function expected({ sql }: Postgres, filters: Filters, by: Dimension[], now: number) {
    const bounded = { ...filters, from_ms: filters.from_ms ?? now - 10 * dayMs, to_ms: filters.to_ms ?? now + dayMs };
    const total = openAggregate();
    const groups = (await addUp(sql, bounded, by)).map(({ values, aggregate }) => {
      addAggregate(total, aggregate);
      return [JSON.stringify(groupKey(values)), totalsOf(aggregate)] as const;
    });
    return { totals: totalsOf(total), groups: by.length === 0 ? {} : Object.fromEntries(groups) };
  }

  async function asked(postgres: Postgres, filters: Filters, by: Dimension[], now: number, dayRows = -1) {
    const { totals, groups } = await statisticsIn(postgres, filters, by, {
      ...{ now, worth: { dayRows, ms: 0, aheadBytes: dayRows < 0 ? 0 : 50_000 } },
    });
    const named = groups.map(({ key, filters: _, ...each }) => [JSON.stringify(key), each]);
    return { totals, groups: Object.fromEntries(named) };
  }

  type Rows = { server: number; rows: [minutesAgo: number, seed: number][] };
  type Step =
    | ({ do: "store" } & Rows)
    | ({ do: "hold" } & Rows)
    | ({ do: "late" } & Rows)
    | { do: "ask" | "race"; server: number; isSmall: boolean; member: boolean; window: number; by: Dimension[] }
    | { do: "wait"; minutes: number }
    | { do: "prune" };
  const rows = (from: number, to: number) =>
    fc.array(fc.tuple(fc.integer({ min: from, max: to }), fc.nat(999)), { minLength: 1, maxLength: 6 });
  const which = fc.nat(1);
  const bys: Dimension[][] = [[], ["hour"], ["day"], ["upstream_model"], ["day", "member"]];
  const ask = fc.record({
    do: fc.constantFrom<("ask" | "race")[]>("ask", "ask", "race"),
    server: which,
    isSmall: fc.boolean(),
    member: fc.boolean(),
    window: fc.nat(5),
    by: fc.constantFrom(...bys),
  });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("store" as const), server: which, rows: rows(0, 64) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("hold" as const), server: which, rows: rows(0, 64) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("late" as const), server: which, rows: rows(76, 3_000) }) },
    { weight: 6, arbitrary: ask },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), minutes: fc.integer({ min: 1, max: 90 }) }) },
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
      for (const each of commit) await each();
      commit = [];
    };
    const store = (postgres: Postgres, of: [number, number][]) =>
      insertRows(
        postgres,
        of.map(([minutes, seed]) => rowAt(now - minutes * minuteMs - seed, seed)),
        now,
      );
    await store(servers[0]!, [[0, 1], [200, 2], [2_000, 3]]); // biome-ignore format: so that the days have partitions
    for (const each of steps) {
      if (each.do === "wait") {
        // A transaction takes no minute.
        await commitAll();
        now += each.minutes * minuteMs;
      } else if (each.do === "store" || each.do === "late") await store(servers[each.server]!, each.rows);
      else if (each.do === "hold")
        commit.push(await held(servers[each.server]!, (postgres) => store(postgres, each.rows)));
      else if (each.do === "prune") {
        await commitAll();
        await removeOldDays(servers[0]!, now - 1.5 * dayMs, Number.POSITIVE_INFINITY);
      } else {
        const postgres = servers[each.server]!;
        const filters = { ...windows[each.window]!(now), ...(each.member && { member: "anna" }) };
        const question = asked(postgres, filters, each.by, now, each.isSmall ? 50_000 : -1);
        if (each.do === "race") {
          await store(servers[1 - each.server]!, [[30, 1], [90, 4], [1_500, 5]]); // biome-ignore format: three times
          await question;
          continue;
        }
        const given = await question;
        expect([each, given]).toEqual([each, await expected(postgres, filters, each.by, now)]);
      }
    }
    await commitAll();
    for (const postgres of servers)
      for (const by of bys) expect(await asked(postgres, {}, by, now)).toEqual(await expected(postgres, {}, by, now));
  }

  /** Stores rows in a transaction that is not committed yet. @returns What commits it. */
  async function held(postgres: Postgres, work: (inside: Postgres) => Promise<void>): Promise<() => Promise<void>> {
    const connection = await postgres.sql.reserve();
    await connection.unsafe("BEGIN");
    const inside = { ...postgres, ask: (question: never) => (question as (sql: unknown) => never)(connection) };
    try {
      await work(inside as Postgres);
    } catch {
      // The day has no partition yet: such a row is tried again, elsewhere.
      await connection.unsafe("ROLLBACK");
      connection.release();
      return async () => {};
    }
    return async () => {
      await connection.unsafe("COMMIT");
      connection.release();
    };
  }

  test("are those of the rows, while two servers store, ask and prune", async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 50 }), play), {
      numRuns: 8,
      endOnFailure: true,
    });
  });

  test("read the rows of the last hours once, and then those that came since", async () => {
    await empty();
    const [postgres, now] = [servers[0]!, noon + 17 * minuteMs];
    const ask = async () => (await asked(servers[1]!, {}, ["hour"], now)).totals.request_count;
    await insertRows(
      postgres,
      Array.from({ length: 70 }, (_, minutes) => rowAt(now - minutes * minuteMs)),
      now,
    );
    expect(await ask()).toBe(70);
    // Who read them again would miss them.
    await postgres.sql.unsafe("DELETE FROM dragoman.requests");
    await insertRows(postgres, [rowAt(now), rowAt(now - 40 * minuteMs)], now);
    expect(await ask()).toBe(72);
    const [index] = await postgres.sql`SELECT count(*)::int AS count FROM pg_indexes
      WHERE tablename LIKE 'requests_20%' AND indexdef LIKE '%(arrived)'`;
    const [days] = await postgres.sql`SELECT count(*)::int AS count FROM pg_inherits
      WHERE inhparent = 'dragoman.requests'::regclass`;
    expect(index).toEqual(days);
  });

  test("that somebody asked for are completed before they are asked for again; those of a member are not", async () => {
    await empty();
    const [postgres, now] = [servers[0]!, noon + 17 * minuteMs];
    const store = (at: number, minutes: number[]) =>
      insertRows(
        postgres,
        minutes.map((each) => rowAt(at - each * minuteMs)),
        at,
      );
    await store(now, [5, 200]);
    expect((await asked(servers[1]!, { from_ms: now - 5 * hourMs }, ["hour"], now)).totals.request_count).toBe(2);
    await asked(servers[1]!, { member: "anna" }, ["day"], now);
    expect([...(await postgres.sql`SELECT question FROM dragoman.questions`)]).toEqual([
      { question: { filters: {}, by: ["hour"] } },
    ]);
    const later = now + 20 * hourMs;
    await store(later, [0, 90, 300, 1_000]);
    await completeStatistics(postgres, later, () => true, { dayRows: -1, ms: 0, aheadBytes: 0 });
    // Who read them only now would miss them.
    await postgres.sql`DELETE FROM dragoman.requests WHERE started_at_ms > ${now - 200 * minuteMs}::bigint`;
    await store(later, [1]);
    const filters = { from_ms: Math.floor((now - 5 * hourMs) / hourMs) * hourMs };
    expect((await asked(servers[1]!, filters, ["hour"], later)).totals.request_count).toBe(7);
  });

  test("what the pages ask is there before somebody asks it, of all days and of thousands of members", async () => {
    await empty();
    const [postgres, now] = [servers[0]!, noon + 17 * minuteMs];
    const members = Array.from({ length: 3_000 }, (_, at) => `member ${at}`);
    const old = members.map((member, at) => ({ ...rowAt(now - (at % 9) * dayMs - 2 * hourMs, at), member }));
    await insertRows(postgres, old, now);
    await completeStatistics(postgres, now, () => true);
    const answers = async () => {
      const found = [];
      for (const by of usualQuestions) found.push(await statisticsIn(servers[1]!, {}, [...by], { now }));
      return found;
    };
    const before = await answers();
    // Who read them only now would miss them.
    await postgres.sql`DELETE FROM dragoman.requests WHERE started_at_ms < ${now - 15 * hourMs}::bigint
      AND started_at_ms >= (SELECT min(started_at_ms) + 1 FROM dragoman.requests)`;
    expect(await answers()).toEqual(before);
    expect(before[0]!.totals.request_count).toBe(3_000);
    expect(before.find(({ by }) => by[0] === "member")!.groups).toHaveLength(3_000);
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
    const filters = { from_ms: now - 20 * hourMs, to_ms: now };
    const found = await largestSessionsIn(servers[1]!, filters, 2);
    expect([...new Set(found.map(({ key }) => key.session))].sort()).toEqual(["session 4", "session 7"]);
    const { groups } = await statisticsIn(servers[1]!, filters, ["session", "upstream_model"], { now });
    const named = (each: Group[]) => Object.fromEntries(each.map((group) => [JSON.stringify(group.key), group]));
    expect(named(groups)).toMatchObject(named(found));
  });

  test("of more sessions than are listed, those with the most requests are, and the others are added up", async () => {
    await empty();
    const now = noon + 17 * minuteMs;
    const rows = Array.from({ length: 300 }, (_, at) => ({
      ...rowAt(now - at * 20 * minuteMs, at),
      // Some are alike but for a mark that separates.
      session: at % 10 === 0 ? null : `s"\u001f,${Math.floor(Math.sqrt(at))}`,
    }));
    await insertRows(servers[0]!, rows, now);
    for (const by of [["session"], ["session", "upstream_model"], ["day", "session"]] as Dimension[][]) {
      const filters = { from_ms: now - 90 * hourMs, to_ms: now };
      const all = new Map(
        (await addUp(servers[0]!.sql, filters, by)).map((each) => [JSON.stringify(groupKey(each.values)), each]),
      );
      const most = 5;
      const { groups, others } = await addUpFirst(servers[1]!.sql, filters, by, most);
      expect(groups).toHaveLength(most);
      const left = openAggregate();
      for (const { values, aggregate } of groups) {
        const key = JSON.stringify(groupKey(values));
        expect([key, totalsOf(aggregate)]).toEqual([key, totalsOf(all.get(key)!.aggregate)]);
        all.delete(key);
      }
      for (const { aggregate } of all.values()) addAggregate(left, aggregate);
      expect(totalsOf(others!)).toEqual(totalsOf(left));
      if (by[0] === "session") {
        const least = Math.min(...groups.map(({ aggregate }) => aggregate.counts[0]!));
        for (const { aggregate } of all.values()) expect(aggregate.counts[0]).toBeLessThanOrEqual(least);
      }
      const whole = await asked(servers[1]!, filters, by, now);
      expect(whole).toEqual(await expected(servers[0]!, filters, by, now));
    }
    expect([...(await servers[0]!.sql`SELECT question FROM dragoman.questions`)]).toEqual([]);
  });

  test("a question that nobody waits for any more is ended in the database", async () => {
    await empty();
    await insertRows(servers[0]!, [rowAt(noon)], noon);
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%dragoman.requests%'";
    for (const by of [["session"], ["upstream_model"]] as Dimension[][]) {
      const lock = await servers[0]!.sql.reserve();
      await lock.unsafe("BEGIN; LOCK TABLE dragoman.requests");
      const hangUp = new AbortController();
      const question = statisticsIn(servers[1]!, {}, by, { now: noon, signal: hangUp.signal }).then(
        () => "answered",
        () => "ended",
      );
      await until(async () => (await server.administer(waiting, url)).length > 0, "the question waits for the lock");
      hangUp.abort();
      if (by[0] === "upstream_model") await lock.unsafe("ROLLBACK");
      expect(await question).toBe("ended");
      if (by[0] === "session") await lock.unsafe("ROLLBACK");
      lock.release();
    }
  });
});
