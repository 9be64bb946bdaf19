/**
 * Scenario: what requests used of budgets: sent by whoever has it, counted once, and known to the servers that run
 * other requests.
 */
import { expect, test } from "bun:test";
import { inHome } from "../../src/config/home-names";
import { startDemo } from "../../src/demo/demo";
import { Postgres } from "../../src/team/connection";
import { openDiskQueues } from "../../src/team/disk-queue";
import type { Settlement } from "../../src/team/ledger-queries";
import { removeSettled } from "../../src/team/server";
import { saveAccounts } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { individuals } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

describeWithDatabases("settlements of a team", (postgres) => {
  const settlement: Settlement = { budget: "all", kind: "", member: "", item: "", start_ms: 0, amount: 7, unknown: 0 };
  const settle = (id: string, at: string) =>
    `SELECT dragoman.settle('${id}', '${at}', '${JSON.stringify([settlement])}')`;
  const used = (url: string) => postgres.administer("SELECT used::int FROM dragoman.ledger", url);

  test("a server that is started with a folder sends what waits there, before its first request", async () => {
    const home = temporaryFolder();
    const queues = openDiskQueues(inHome(home, "waiting"), () => {});
    queues.queue<Settlement[]>("settlement").add([[Bun.randomUUIDv7(), [settlement]]]);
    queues.close();
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_HOME: home } });
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    await until(async () => Bun.deepEquals(await used(url), [{ used: 7 }]), "all that was used is in the ledger");
    const isEmpty = () => Bun.deepEquals(team.app.team!.waiting(), { requests: 0, settlements: 0 });
    await until(isEmpty, "nothing waits any more");
  });

  test("one that the database refuses is left out and told once, and holds up none behind it", async () => {
    const home = temporaryFolder();
    const queues = openDiskQueues(inHome(home, "waiting"), () => {});
    const [first, refused, last] = [settlement, { ...settlement, amount: 1e30 }, settlement];
    queues.queue<Settlement[]>("settlement").add([first, refused, last].map((each) => [Bun.randomUUIDv7(), [each]]));
    queues.close();
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_HOME: home } });
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    await until(async () => Bun.deepEquals(await used(url), [{ used: 14 }]), "the others are in the ledger");
    await until(() => team.app.team!.waiting().settlements === 0, "nothing waits");
    // A second try would come after a second.
    await Bun.sleep(1_500);
    expect(team.lines.join("").match(/is not counted, because the database refuses it/g)).toHaveLength(1);
  });

  test("a settlement that a lost server's folder still has counts once if it comes within days; later it is told", async () => {
    const url = await postgres.database();
    const server = crypto.randomUUID();
    const idOf = (days: number) => Bun.randomUUIDv7("hex", Date.now() - days * 86_400_000);
    const [lost, forgotten, own] = [idOf(5), idOf(8), idOf(2)];
    const daysAgo = (id: string, days: number) =>
      `UPDATE dragoman.reservations SET changed_at = now() - interval '${days} days' WHERE id = '${id}'`;
    const alive = `INSERT INTO dragoman.servers (id, host, version) VALUES ('${server}', 'alive', '1')`;
    const elsewhere = crypto.randomUUID();
    await postgres.administer(
      `${alive}; ${settle(lost, elsewhere)}; ${settle(forgotten, elsewhere)}; ${settle(own, server)};
       ${daysAgo(lost, 5)}; ${daysAgo(forgotten, 8)}; ${daysAgo(own, 2)}`,
      url,
    );
    // Its first beat makes it the leader, which does the chores.
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_DATABASE_URL: url } });
    const kept = await postgres.administer("SELECT id::text FROM dragoman.reservations", url);
    expect([team.stores.isLeader, kept]).toEqual([true, [{ id: lost }]]);

    const home = temporaryFolder();
    const queues = openDiskQueues(inHome(home, "waiting"), () => {});
    const waiting = queues.queue<Settlement[]>("settlement");
    waiting.add([lost, forgotten, idOf(3)].map((id) => [id, [settlement]]));
    queues.close();
    await using late = await startTeamApp(postgres, { env: { ...team.env, DRAGOMAN_HOME: home } });
    await until(() => late.app.team!.waiting().settlements === 0, "nothing waits");
    expect(await used(url)).toEqual([{ used: 28 }]);
    expect(late.lines.join("")).toContain("1 request of more than 6 days ago");
  });

  test("what is over of a lost server is not read again each minute", async () => {
    const url = await postgres.database();
    await postgres.administer(
      `INSERT INTO dragoman.reservations (id, budget, kind, member, item, start_ms, amount, server, state, changed_at, expires_at)
        SELECT gen_random_uuid(), 'b', '', '', '', 0, 0, '${crypto.randomUUID()}', 'settled', now() - interval '3 days', now()
        FROM generate_series(1, 20000); ANALYZE dragoman.reservations`,
      url,
    );
    const read = async () => {
      const rows = (await postgres.administer(
        `SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS read FROM pg_stat_user_tables
          WHERE relname = 'reservations'`,
        url,
      )) as { read: number }[];
      return rows[0]!.read;
    };
    const before = await read();
    // A connection that ends tells what it has read.
    const own = new Postgres({ url });
    await removeSettled(own);
    await own.close();
    expect((await read()) - before).toBeLessThan(100);
    const [left] = (await postgres.administer(
      "SELECT count(*)::int AS count FROM dragoman.reservations",
      url,
    )) as object[];
    expect(left).toEqual({ count: 20_000 });
  });

  test("cut ends the streams of all servers when a request at one of them uses up the budget", async () => {
    const demo = startDemo({ pace: 10, accounts: [] });
    await using one = await startTeamApp(postgres, { demo });
    await using other = await startTeamApp(postgres, { env: one.env, demo });
    const accounts = individuals("octo-demo");
    demo.accounts.push(...accounts);
    await saveAccounts(one.stores, accounts);
    await until(() => [one, other].every(({ app }) => app.accounts.length === 1), "both servers have the account");
    const budget = { name: "all", unit: "requests", limit: 2, per: "month", then: "warn", cut: true };
    await one.app.config.change({ budgets: [budget] });
    await until(() => other.app.budgets.budgets.length === 1, "the other server knows the budget");
    const post = (url: string, content: string, stream: boolean) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "gpt-5-mini", stream, messages: [{ role: "user", content }] }),
      });
    const running = await post(other.url, "[demo: long 200]", true);
    for (let count = 0; count < 2; count += 1) expect((await post(one.url, "Hello", false)).status).toBe(200);
    const text = await running.text();
    expect([text.includes("is used up"), text.includes("[DONE]")]).toEqual([true, false]);
    await demo.stop();
  });
});
