/**
 * Scenario: the same name on two hosts, and the same person saved and for one run: what each was used for is booked
 * apart.
 */
import { expect, test } from "bun:test";
import { type AccountItem, listAccounts } from "../../src/admin/api/accounts";
import type { Demo } from "../../src/demo/demo";
import { savedFrom } from "../people/accounts/bench";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

/** @param hosts Where octo-demo is signed in. */
async function world(hosts: string[], temporaryToken?: (demo: Demo) => string) {
  const saved = ({ accounts: [octo] }: Demo) => hosts.map((host) => ({ ...savedFrom(octo!), host }));
  const proxy = await startProxy({ saved, temporaryToken });
  return {
    ...proxy,
    async ask(times: number) {
      const body = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello" }] };
      for (let turn = 0; turn < times; turn++) {
        const response = await proxy.post("/v1/chat/completions", body);
        await response.text();
        expect(response.status).toBe(200);
      }
      proxy.app.history.flush();
    },
    /** How many requests the page shows for each account. */
    async stats() {
      const told = (item: AccountItem): [string, number] => [item.account_key, item.stats!.request_count];
      return (await listAccounts(proxy.app, Date.now() - 3600_000)).map(told);
    },
  };
}

test("the same login on two hosts is two accounts in rows, numbers, filters and links", async () => {
  await using twins = await world(["github.com", "company.ghe.com"]);
  const { app } = twins;
  await twins.ask(3);
  app.accounts[0]!.setState({ name: "cooling", reason: "It rests." });
  await twins.ask(1);
  expect((await app.history.list({}, 10)).items.map((row) => [row.account_id, row.account_key])).toEqual([
    ["octo-demo", "company.ghe.com/octo-demo"],
    ...Array.from({ length: 3 }, () => ["octo-demo", "github.com/octo-demo"]),
  ]);
  expect(await twins.stats()).toEqual([
    ["github.com/octo-demo", 3],
    ["company.ghe.com/octo-demo", 1],
  ]);
  for (const [key, count] of await twins.stats())
    expect((await app.history.list({ account_key: key }, 10)).items).toHaveLength(count);
  // A row of before says neither.
  app.history.add(entry({ account_id: "octo-demo", account_key: null, started_at_ms: Date.now() }));
  expect((await twins.stats()).map(([, count]) => count)).toEqual([3, 1]);
});

test("the same person saved and for this run is booked apart, and the run's account as one from its first request", async () => {
  await using both = await world(["github.com"], (demo) => demo.accounts[0]!.githubToken);
  const { app, demo } = both;
  // Its name is not known while the first request is served.
  demo.intercept("/user", () => new Response("", { status: 502 }));
  await both.ask(1);
  expect(app.accounts[0]!.id).toBe("temporary");
  await app.accounts[0]!.quota();
  expect(app.accounts[0]!.id).toBe("octo-demo");
  await both.ask(2);
  expect(await both.stats()).toEqual([
    ["github.com/(temporary)", 3],
    ["github.com/octo-demo", 0],
  ]);
});

test("the first request of a run's account is booked under its name, when that is known before it has ended", async () => {
  await using run = await world([], (demo) => demo.accounts[0]!.githubToken);
  const named = Promise.withResolvers<void>();
  run.demo.intercept("/chat/completions", async () => {
    await named.promise;
    return undefined;
  });
  const asked = run.ask(1);
  await until(() => run.app.accounts[0]!.id !== "temporary", "the account has its name");
  named.resolve();
  await asked;
  const [row] = (await run.app.history.list({}, 10)).items;
  expect([row!.account_id, JSON.parse(row!.attempts)[0].account]).toEqual(["octo-demo", "octo-demo"]);
});
