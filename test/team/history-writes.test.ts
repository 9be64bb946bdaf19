/** Scenario: rows of the history in Postgres: when pages wait for them, and whose clock decides what they change. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { SQL } from "bun";
import { dayMs, hourMs } from "../../src/lib/format";
import { Postgres } from "../../src/team/connection";
import { addPartitions, insertRows } from "../../src/team/requests";
import { addUpPeriods } from "../../src/team/statistics";
import { entry } from "../support/history-rows";
import { proof } from "../support/proof";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { until } from "../support/until";

describeWithPassingDatabases("the history in Postgres", (postgres) => {
  let team: TeamApp;
  beforeAll(async () => {
    team = await startTeamApp(postgres);
  });
  afterAll(() => team[Symbol.asyncDispose]());
  const url = () => team.env.DRAGOMAN_DATABASE_URL!;
  beforeEach(() => postgres.administer("DELETE FROM dragoman.requests", url()));
  const rowAt = (started_at_ms: number) => entry({ request_id: Bun.randomUUIDv7(), started_at_ms, member: "anna" });

  test("days that are too old are removed by the server that leads alone", async () => {
    await using other = await startTeamApp(postgres, { env: team.env, demo: team.demo });
    expect([team.app.isLeader, other.app.isLeader]).toEqual([true, false]);
    team.app.history.add(rowAt(Date.now() - 400 * dayMs));
    await team.app.history.flush();
    await other.app.history.prune();
    expect(await team.app.history.count()).toBe(1);
    await team.app.history.prune();
    expect(await team.app.history.count()).toBe(0);
  });

  test("a page waits for the rows of before its question only, however busy the server and far the database", async () => {
    await postgres.administer(
      `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END $$;
       CREATE TRIGGER far BEFORE INSERT ON dragoman.requests FOR EACH STATEMENT EXECUTE FUNCTION wait()`,
      url(),
    );
    const { history } = team.app;
    let added = 0;
    const add = () => {
      added += 1;
      const row = rowAt(Date.now());
      history.add(row);
      return row.request_id;
    };
    const load = setInterval(add, 5);
    try {
      await until(() => added > 50, "the server is busy");
      for (const ask of [() => history.list({}, 200), () => history.totals({}), () => history.flush()]) {
        const last = add();
        await ask();
        expect(
          await postgres.administer(`SELECT 1 FROM dragoman.requests WHERE request_id = '${last}'`, url()),
        ).toHaveLength(1);
      }
    } finally {
      clearInterval(load);
      await postgres.administer("DROP FUNCTION wait CASCADE", url());
      // Those of the load would come into the next test.
      await history.flush();
    }
  });

  test("the prompts of one member go on over pages", async () => {
    const rows = Array.from({ length: 25 }, (_, at) => ({ ...rowAt(Date.now() - at * 1_000), prompt: `p-${at}` }));
    await insertRows(team.stores.postgres, rows);
    const { history } = team.app;
    const first = await history.prompts({ member: "anna" }, 20);
    expect([first.items.length, typeof first.next_cursor_id]).toEqual([20, "number"]);
    const second = await history.prompts({ member: "anna" }, 20, first.next_cursor_id!);
    expect([second.items.length, second.next_cursor_id]).toEqual([5, null]);
    const all = [...first.items, ...second.items].map(({ prompt }) => prompt);
    expect(new Set(all).size).toBe(25);
  });

  test("rows of a server whose clock is late are in the sums of others, whose clock is early or late", async () => {
    const other = new Postgres({ url: url() });
    const realNow = Date.now;
    const ago = Math.floor((Date.now() - 4 * hourMs) / hourMs) * hourMs;
    const sum = async () => {
      const { history } = team.app;
      const [totals, byMember] = [await history.totals({}), await history.statistics({ from_ms: 0 }, ["member"])];
      return [totals.request_count, byMember.groups.find(({ key }) => key.member === "anna")?.request_count];
    };
    try {
      await insertRows(other, [rowAt(ago)]);
      expect(await sum()).toEqual([1, 1]);
      for (const hours of [-2, -5, 3]) {
        const before = await sum();
        Date.now = () => realNow() + hours * hourMs;
        team.app.history.add(rowAt(ago + hourMs / 2));
        await team.app.history.flush();
        Date.now = realNow;
        expect([hours, ...(await sum())]).toEqual([hours, before[0]! + 1, before[1]! + 1]);
      }
      // A server whose clock is early does not take the present hour for over.
      const counted = async () => (await team.app.history.totals({})).request_count;
      Date.now = () => realNow() + 30 * hourMs;
      await addUpPeriods(other, undefined, () => true);
      const first = await counted();
      Date.now = realNow;
      await insertRows(other, [rowAt(Date.now() - hourMs)]);
      expect(await counted()).toBe(first + 1);
    } finally {
      Date.now = realNow;
      await other.close();
    }
  });

  test("connections that are opened while others add a day's partition store and read its rows", async () => {
    const start = Date.UTC(2030, 0, 1);
    const dayAt = (day: number) => start + day * dayMs;
    // The more there are, the longer a connection reads which there are.
    await addPartitions(
      team.stores.postgres,
      Array.from({ length: 100 }, (_, day) => dayAt(day)),
    );
    for (let day = 100; day < (proof ? 160 : 112); day += 1) {
      const servers = await Promise.all(
        Array.from({ length: 6 }, async () => {
          const opened = new Postgres({ url: url() });
          await opened.requests.ask((sql) => sql`SELECT 1`);
          return opened;
        }),
      );
      await Promise.all(
        servers.map(async ({ requests }, at) => {
          await Bun.sleep(2 * at);
          await insertRows(requests, [rowAt(dayAt(day))], dayAt(day));
        }),
      );
      const count = (sql: SQL) => sql`SELECT 1 FROM dragoman.requests WHERE started_at_ms = ${dayAt(day)}`;
      for (const { requests } of servers) expect(await requests.ask(count)).toHaveLength(servers.length);
      await Promise.all(servers.map((each) => each.close()));
    }
  });

  test("a question that finds no database is not told that nothing was changed", async () => {
    await postgres.stop();
    const { message } = await team.app.history.statistics({}, ["session"]).catch((thrown) => thrown);
    expect(message).toMatch(/^The database cannot be used now: [^.]*\. Try again when it is back\.$/);
  });
});
