/** Scenario: what `/metrics` says of a team: everybody's accounts, the servers and the database. */
import { expect, test } from "bun:test";
import { maxNamedAccounts, quotaPoints, statePoints } from "../../../src/books/observe/account-points";
import { openCounter } from "../../../src/books/observe/series";
import type { Account } from "../../../src/people/accounts/account";
import type { AccountState } from "../../../src/people/accounts/account-state";
import { member } from "../../support/members";
import { postJson } from "../../support/post-json";
import { startProxy } from "../../support/proxy";
import { readSamples, valueIn } from "../../support/samples";
import { describeWithPassingDatabases } from "../../support/shared-postgres";
import { startTeamApp } from "../../support/team-app";
import { until } from "../../support/until";

const scrape = async (url: string) => {
  const text = await (await fetch(`${url}/metrics`)).text();
  return { text, samples: readSamples(text) };
};

describeWithPassingDatabases("a team's metrics", (postgres) => {
  test("accounts of all members with their names, servers, leader and members", async () => {
    await using team = await startTeamApp(postgres);
    const anna = await team.addMember("anna", "anna-demo");
    await team.addMember("ben", "ben-demo", "ben-work");
    await using other = await startTeamApp(postgres, { env: team.env, demo: team.demo });
    const [account] = team.app.forMember(anna.id).accounts;
    await account!.quota();
    account!.setState({ name: "failed", reason: "GitHub refuses it." });
    await until(() => other.app.team!.servers?.length === 2, "both servers are known");
    const [{ samples, text }, { samples: others }] = [await scrape(team.url), await scrape(other.url)];
    const anna1 = { account: "github.com/anna-demo", member: "anna" };
    expect(valueIn(samples, "dragoman_account_state", { ...anna1, state: "failed" })).toBe(1);
    expect(valueIn(samples, "dragoman_account_state", { ...anna1, state: "ready" })).toBe(0);
    expect(valueIn(samples, "dragoman_account_state", { member: "ben", state: "ready" })).toBe(2);
    expect(valueIn(samples, "dragoman_quota_remaining_ratio", anna1)).toBeGreaterThan(0);
    expect(valueIn(samples, "dragoman_accounts", { state: "ready" })).toBe(2);
    expect(valueIn(samples, "dragoman_accounts", { state: "failed" })).toBe(1);
    expect(valueIn(samples, "dragoman_members")).toBe(2);
    // Whoever asks without a key learns numbers only.
    const health = await (await fetch(`${team.url}/health`)).json();
    const states = { ready: 2, cooling: 0, exhausted: 0, failed: 1, paused: 0 };
    expect(health).toMatchObject({ status: "ok", accounts: [], team_accounts: states });
    expect(valueIn(others, "dragoman_servers")).toBe(2);
    expect([valueIn(samples, "dragoman_leader"), valueIn(others, "dragoman_leader")]).toEqual([1, 0]);
    expect([valueIn(samples, "dragoman_database_up"), valueIn(samples, "dragoman_isolated")]).toEqual([1, 0]);
    expect(valueIn(samples, "dragoman_rows_waiting")).toBe(0);
    const answered = valueIn(samples, "dragoman_database_answered_timestamp_seconds")!;
    expect(Math.abs(Date.now() / 1_000 - answered)).toBeLessThan(20);
    expect(valueIn(samples, "dragoman_metrics_unreadable")).toBeUndefined();
    if (Bun.which("promtool")) {
      const lint = Bun.spawnSync(["promtool", "check", "metrics"], { stdin: Buffer.from(text) });
      expect(`${lint.stdout}${lint.stderr}`).toBe("");
    }
    for (const secret of [anna.key, "ghu_"]) expect(text).not.toContain(secret);
  });

  test("a database that is away: what waits, and since when", async () => {
    await using team = await startTeamApp(postgres, { env: { DRAGOMAN_DATABASE_GRACE: "0" } });
    const anna = await team.addMember("anna", "anna-demo");
    const ask = () =>
      postJson(
        `${team.url}/v1/chat/completions`,
        { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] },
        { "x-api-key": anna.key },
      );
    expect((await ask()).status).toBe(200);
    await postgres.stop();
    try {
      await ask().then((answer) => answer.text());
      await until(() => team.app.team!.waiting().requests > 0, "rows wait for the database");
      const { samples } = await scrape(team.url);
      expect(valueIn(samples, "dragoman_database_up")).toBe(0);
      expect(valueIn(samples, "dragoman_isolated")).toBe(1);
      expect(valueIn(samples, "dragoman_rows_waiting", { kind: "requests" })).toBeGreaterThan(0);
      expect(valueIn(samples, "dragoman_servers")).toBeUndefined();
      expect(valueIn(samples, "dragoman_members")).toBe(1);
      expect(valueIn(samples, "dragoman_account_state", { member: "anna" })).toBe(1);
    } finally {
      await postgres.start();
    }
    await until(() => team.app.team!.waiting().requests === 0, "no row waits any more");
    const { samples } = await scrape(team.url);
    expect(valueIn(samples, "dragoman_database_up")).toBe(1);
  });
});

test("one person has no series of a team, and accounts without a member", async () => {
  await using proxy = await startProxy();
  const { samples } = await scrape(proxy.url);
  for (const name of ["members", "servers", "leader", "database_up", "isolated", "rows_waiting"])
    expect(valueIn(samples, `dragoman_${name}`)).toBeUndefined();
  const states = samples.filter(({ name }) => name === "dragoman_account_state");
  expect(states.map(({ labels }) => Object.keys(labels))).toEqual(Array(5).fill(["account", "state"]));
  expect(valueIn(samples, "dragoman_accounts")).toBe(1);
});

const quota = { unit: "premium", unlimited: false, entitlement: 300, remaining: 200 };
const accounts = (count: number, of: (at: number) => { member: string | null; name: AccountState["name"] }) =>
  Array.from({ length: count }, (_, at) => {
    const { member, name } = of(at);
    return { key: `github.com/a${at}`, member, state: { name }, knownQuota: quota } as unknown as Account;
  });

test("of thousands of accounts those in trouble and the owner's have series of their own", () => {
  const all = accounts(3_000, (at) => ({
    member: at % 500 === 7 ? null : `m${at}`,
    name: at % 100 === 99 ? "failed" : at % 50 === 48 ? "exhausted" : "ready",
  }));
  const sources = { allAccounts: all, members: { find: (id: string) => member({ id, name: id }) } };
  const points = statePoints(sources);
  expect(points).toHaveLength(5 * maxNamedAccounts);
  const inState = (state: string) => points.filter(({ labels, value }) => labels.state === state && value === 1);
  expect([inState("failed").length, inState("exhausted").length]).toEqual([30, 60]);
  const owners = new Set(points.filter(({ labels }) => !("member" in labels)).map(({ labels }) => labels.account));
  expect(owners.size).toBe(6);
  expect(quotaPoints(sources)).toHaveLength(maxNamedAccounts);
});

test("a counter gives up the person before the model", () => {
  const counter = openCounter(["account", "model"]);
  for (let at = 0; at < 5_000; at++) counter.add([`account-${at}`, `model-${at % 3}`], 1);
  const all = [...counter.all()];
  expect(all).toHaveLength(1_003);
  const others = all.filter(([[account]]) => account === "other").map(([[, model], value]) => [model, value]);
  expect(others.sort()).toEqual([
    ["model-0", 1_333],
    ["model-1", 1_334],
    ["model-2", 1_333],
  ]);
  for (let at = 0; at < 5_000; at++) counter.add(["x", `invented-${at}`], 1);
  expect([...counter.all()].length).toBe(2_001);
  expect([...counter.all()].reduce((sum, [, value]) => sum + value, 0)).toBe(10_000);
});
