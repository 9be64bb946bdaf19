/** What requests used of budgets: sent by whoever has it, counted once, and known to the servers that run other requests. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startDemo } from "../../src/demo/demo";
import { diskQueueName, openDiskQueues } from "../../src/team/disk-queue";
import type { Settlement } from "../../src/team/ledger-queries";
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
    const queues = openDiskQueues(join(home, diskQueueName), () => {});
    queues.queue<Settlement[]>("settlement").add([[crypto.randomUUID(), [settlement]]]);
    queues.close();
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_HOME: home } });
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    await until(async () => Bun.deepEquals(await used(url), [{ used: 7 }]), "all that was used is in the ledger");
    expect(team.app.team!.waiting()).toEqual({ requests: 0, settlements: 0 });
  });

  test("a settlement that a lost server's folder still has counts once, however late it is sent again", async () => {
    const url = await postgres.database();
    const [lost, lostId, left, leftId] = Array.from({ length: 4 }, () => crypto.randomUUID());
    await postgres.administer(
      `INSERT INTO dragoman.servers (id, host, version, heartbeat_at) VALUES ('${lost}', 'lost-host', '1', now() - interval '40 days');
       ${settle(lostId!, lost!)}; ${settle(leftId!, left!)};
       UPDATE dragoman.reservations SET changed_at = now() - interval '40 days'`,
      url,
    );
    // Its first beat makes it the leader, which does the chores.
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_DATABASE_URL: url } });
    const kept = await postgres.administer("SELECT server::text FROM dragoman.reservations", url);
    expect([team.stores.isLeader, kept]).toEqual([true, [{ server: lost }]]);
    await postgres.administer(settle(lostId!, crypto.randomUUID()), url);
    expect(await used(url)).toEqual([{ used: 14 }]);
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
