/** Scenario: the past of the demo: made up from a seed, plausible, given once. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { columnNames } from "../../src/books/history/entry";
import { portionsIn } from "../../src/books/history/portions";
import { followPast, giveKeysAndBudgets, givePast, madeUpPast } from "../../src/cli/start/demo-fill";
import { pastOf } from "../../src/cli/start/demo-past";
import { inviteGuest, makeTeam, teamNames } from "../../src/cli/start/demo-team";
import { readEnvironment } from "../../src/config/environment";
import { openDemo } from "../../src/demo/demo";
import { listPrices } from "../../src/demo/models";
import { dayMs, utcDay } from "../../src/lib/format";
import { openLocalStores } from "../../src/parts/local-stores";
import { openApp } from "../../src/parts/open-app";
import type { KeyList } from "../../src/people/keys/key-list";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { handler } from "../../src/server";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { postJson } from "../support/post-json";
import { startProxy } from "../support/proxy";
import { temporaryFolder } from "../support/temporary-folder";
import { sharedTokenizer } from "../support/tokenizer";
import { until } from "../support/until";
import { testWritten } from "../support/written";

/** Some of its two weeks are of the month before. */
const now = new Date(2026, 10, 6, 16, 40).getTime();

const past = pastOf(now, listPrices);

const withoutIds = (all: typeof past) => JSON.stringify(all.map(({ request_id: _, ...row }) => row));

test("the rows of the demo's past are the same for the same moment, in the order in which they ended, each with an id of its own", () => {
  expect(withoutIds(pastOf(now, listPrices)) === withoutIds(past)).toBe(true);
  const ends = past.map((row) => row.started_at_ms + row.duration_ms);
  expect(ends.toSorted((one, other) => one - other)).toEqual(ends);
  expect(new Set(past.map(({ request_id }) => request_id)).size).toBe(past.length);
});

test("the rows of the demo's past have every column, null where nothing is known", () => {
  for (const row of past) {
    expect(Object.keys(row).sort()).toEqual(columnNames.toSorted());
    expect(Object.values(row)).not.toContain(undefined);
  }
});

/** The rows that have the same in these columns, and what their numbers add up to. */
function added(rows: readonly object[], ...by: string[]): string {
  const cells = rows.map((row) => new Map(Object.entries(row)));
  const columns = Object.keys(rows[0]!).filter(
    (name) => !["started_at_ms", "http_status", "stream", ...by].includes(name),
  );
  const groups = Map.groupBy(cells, (row) => by.map((name) => row.get(name) ?? "–").join(" | "));
  const told = [...groups].map(([key, of]) => {
    const names = columns.filter((name) => of.some((row) => typeof row.get(name) === "number"));
    const sums = names.map((name) => `${name} ${of.reduce((sum, row) => sum + (row.get(name) as number), 0)}`);
    return `${key}: ${[`${of.length} rows`, ...sums].join(", ")}`;
  });
  return told.sort().join("\n");
}

const seen = new Set<string | null>();
const timed = past.map(({ started_at_ms: at, session, prompt, ...row }) => {
  const [sessions, prompts] = [session, prompt].map((id) => Number(!seen.has(id) && seen.add(id) !== undefined));
  const lengths = [session, prompt].map((id) => id?.length).join();
  const daysAgo = Math.round((now - new Date(at).setHours(16, 40, 0, 0)) / dayMs);
  return { ...row, sessions, prompts, lengths, daysAgo, hour: new Date(at).getHours() };
});
const tries = past.flatMap(({ attempts, error_type }) => {
  const all = JSON.parse(attempts) as object[];
  return all.map((each, at) => ({ error_type, of: all.length, at, ...each }));
});
const pieces = past.flatMap((row) => portionsIn(row.portions));

const tables: [title: string, rows: object[], by: string][] = [
  ["tools and keys", past, "client_name path upstream_endpoint client_dialect upstream_dialect key_name"],
  ["accounts and models", past, "account_key account_id client_model upstream_model"],
  ["who asks, and why", past, "initiator initiator_reason kind agent_type cache_miss"],
  ["how it ends", past, "stream http_status stop_reason error_type error_message"],
  ["tries", tries, "error_type of at account status error"],
  ["projects", timed, "project client_name lengths"],
  ["hours", timed, "client_name hour"],
  ["days", timed, "daysAgo"],
  ["pieces", pieces, "kind tool"],
];
const rows = tables.map(([title, all, by]) => [title, async () => added(all, ...by.split(" "))] as const);
testWritten("demo/past.txt", rows);

test("the demo gets its past once, a budget of which four fifths are used, and an account that cools down", async () => {
  await using proxy = await startProxy({
    accounts: ["octo-demo", "plus-demo"],
    clock: { now: () => now, monotonic: () => performance.now() },
  });
  const madeUp = madeUpPast(now, listPrices);
  const live = async () => {
    await giveKeysAndBudgets(proxy.app, proxy.app.environment, now, madeUp);
    await proxy.app.config.change({ retentionDays: 365 });
    await followPast(proxy.app, await givePast(proxy.app, madeUp), (charge) => proxy.demo.charge(charge));
  };
  await live();
  const count = proxy.history.count();
  expect(count).toBe(past.length);
  // What the history says, GitHub reports.
  const spent = past.filter(({ account_id }) => account_id !== "work-demo");
  const billed = proxy.demo.charges.reduce((sum, { credits }) => sum + credits, 0);
  expect(billed).toBeCloseTo(spent.reduce((sum, { cost }) => sum + (cost ?? 0), 0) / 1e9, 3);
  const [state] = await proxy.app.budgets.overview();
  expect(state!.used / state!.budget.limit).toBeCloseTo(0.8, 2);
  const ofMonth = past.filter(({ started_at_ms }) => started_at_ms >= Date.UTC(2026, 10));
  expect(state!.used).toBeCloseTo(ofMonth.reduce((sum, { cost }) => sum + (cost ?? 0), 0) / 1e9, 3);
  expect(proxy.app.accounts.map(({ id, state }) => [id, state.name])).toEqual([
    ["octo-demo", "ready"],
    ["plus-demo", "cooling"],
  ]);
  // The keys of the past are shown, with their last use, and nobody has to send one.
  const keys = async () => (await (await fetch(`${proxy.url}/api/admin/keys`)).json()) as KeyList;
  const { items, required } = await keys();
  expect([items.map(({ name }) => name).sort(), required]).toEqual([["ci", "desktop", "laptop"], false]);
  expect(items.every(({ last_used_at_ms }) => last_used_at_ms !== null)).toBe(true);
  expect(await (await fetch(`${proxy.url}/admin/keys`)).text()).toContain("made up for the demo");
  const answer = await proxy.post("/v1/chat/completions", {
    model: "gpt-5-mini",
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(answer.status).toBe(200);
  await answer.text();
  await live();
  proxy.history.flush();
  expect(proxy.history.count()).toBe(count + 1);

  const removed = await proxy.post("/api/admin/keys/ci/revoke", {});
  expect([removed.status, (await keys()).items.length]).toEqual([200, 2]);
  // From a first real key on, a key is needed, and those that are made up are none.
  const { key } = (await (await proxy.post("/api/admin/keys", { name: "mine" })).json()) as { key: string };
  const models = (sent?: string) =>
    fetch(`${proxy.url}/v1/models`, { headers: sent === undefined ? {} : { "x-api-key": sent } });
  const statuses = [undefined, "made up for the demo: laptop", key].map(async (sent) => (await models(sent)).status);
  expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
});

test("the demo of a team has a data folder of its own, where commands find it", async () => {
  const home = temporaryFolder();
  const env = { DRAGOMAN_HOME: home };
  await using command = run(["start", "--demo", "--team", "--json", "--port", "0"], { env });
  const { url } = await command.ready();
  expect(readdirSync(home)).toEqual(["demo-team"]);
  expect(JSON.parse((await inProcess(["status", "--json"], env)).stdout)).toMatchObject({ url });
  const { groups } = (await (await fetch(`${url}/api/admin/statistics?by=member`)).json()) as {
    groups: { key: { member: string | null } }[];
  };
  expect(groups.filter(({ key }) => key.member !== null)).toHaveLength(3);
  expect(command.stderr()).not.toContain("The config was changed");
});

test("the demo of a team has members, one of whom has no budget left, and a link for a guest", async () => {
  const home = temporaryFolder();
  const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home });
  const demo = openDemo(teamNames);
  const stores = openLocalStores(environment, { follow: false, write: () => {} });
  const begun = Date.now();
  const madeUp = madeUpPast(begun, listPrices, await makeTeam(stores, demo));
  await giveKeysAndBudgets(stores, environment, begun, madeUp);
  const app = openApp({ environment, stores, demo: { url: demo.url }, version: "1", tokenizer: sharedTokenizer() });
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handler(app, false) });
  try {
    const rows = await givePast(app, madeUp);
    await followPast(app, rows, (charge) => demo.charge(charge));
    // What was spent in this month, GitHub bills and takes from the quotas.
    const month = new Date().toISOString().slice(0, 7);
    for (const { id, key } of app.allAccounts) {
      const own = rows.filter((row) => row.account_key === key && utcDay(row.started_at_ms).startsWith(month));
      const { premium } = demo.accounts.find(({ login }) => login === id)!.quota;
      const spent = own.reduce((sum, { cost }) => sum + (cost ?? 0), 0) / 1e9;
      expect([id, premium.creditsUsed?.toFixed(3)]).toEqual([id, spent.toFixed(3)]);
    }
    const members = app.members!;
    const budget = app.budgets.budgets.find(({ name }) => name === "Members")!;
    expect(budget.then).toBe("stop");
    const { states } = await app.budgets.holders(budget, { limit: 10 });
    expect(states.map(({ holder, used }) => [holder!.name, used > budget.limit])).toEqual([
      ["ben", true],
      ["anna", false],
      ["carla", false],
    ]);
    const ask = async (name: string, model: string) => {
      const key = await members.createKey(members.named(name)!.id, {
        ...{ name: "mine", models: null, expiresAt: null },
        by: members.clientKeysOf(members.named(name)!.id)[0]!.digest,
      });
      const messages = [{ role: "user", content: "Hi" }];
      const answer = await postJson(`${server.url}v1/chat/completions`, { model, messages }, { "x-api-key": key });
      return [answer.status, await answer.text()] as const;
    };
    expect(await ask("anna", exampleModels.gpt)).toEqual([200, expect.stringContaining("DEMO")]);
    expect(await ask("ben", exampleModels.gpt)).toEqual([429, expect.stringContaining("Members")]);
    expect(await ask("carla", exampleModels.gpt)).toEqual([403, expect.stringContaining("may not use")]);

    const path = await inviteGuest(members);
    const link = server.url.origin + path;
    expect(await (await fetch(link)).text()).toContain("You are invited");
    // Whoever accepts it on this machine is the guest from then on, who confirms tools, and not the owner.
    const begun = await fetch(`${link}/sign-in`, { method: "POST", redirect: "manual" });
    const at = server.url.origin + begun.headers.get("location")!;
    await until(async () => (await (await fetch(at)).text()).includes("Show my key"), "GitHub has let the guest in");
    const cookie = (await fetch(`${link}/key`, { method: "POST" })).headers.get("set-cookie")!.split(";")[0]!;
    const device = await fetch(`${server.url.origin}/admin/device`, { headers: { cookie } });
    expect(await device.text()).toMatch(/Sign in a tool.*guest/s);
    // The team stays as it is, and at the next start the guest's account is the guest's.
    const next = openDemo(teamNames);
    expect(await makeTeam(stores, next)).toEqual([]);
    expect(next.accounts.find((account) => !next.signIns.includes(account))?.login).toBe("guest-two-demo");
    await next.stop();
  } finally {
    app.close();
    await stores.close();
    await demo.stop();
  }
}, 60_000);
