/**
 * Scenario: GitHub's own report of AI credits beside the history's sums: in the admin API and by the command;
 * `fixtures/scenes/reconcile.txt` has why there may be none.
 */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reconciliation } from "../../src/admin/api/reconcile";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { run } from "../support/command";
import { entry } from "../support/history-rows";
import { inProcess } from "../support/in-process";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("reconcile");

/** A month that is over. */
const month = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 7);
const day = (date: number) => `${month}-${String(date).padStart(2, "0")}`;
const at = (date: number, hour = 9) => Date.parse(day(date)) + hour * 3_600_000;
const token = "github_pat_DEMOocto0001";
const account_key = "github.com/octo-demo";
const claude = "claude-sonnet-4.6";

const accountsOf = (): DemoAccount[] =>
  demoAccounts().map((each) => ({ ...each, quota: each.host === "business" ? each.quota : quotas.credits() }));

const proxy = await startProxy({ demo: { accounts: accountsOf(), generation: "C" }, config: { retentionDays: 365 } });
afterAll(() => proxy[Symbol.asyncDispose]());

const ask = (body: object, to = proxy) => to.post("/api/admin/reconcile", body);
const books = async (body: object = { token }): Promise<Reconciliation> => {
  const response = await ask(body);
  expect(response.status).toBe(200);
  return (await response.json()) as Reconciliation;
};
/** GitHub's side: what a client made it charge. */
const charged = (at: number, credits: number, model = "Claude Sonnet 4.6") =>
  proxy.demo.charge({ login: "octo-demo", at, model, credits });
/** Ours: a row that says the same. */
const counted = (at: number, credits: number | null, more: Parameters<typeof entry>[0] = {}) =>
  proxy.app.history.add(
    entry({
      started_at_ms: at,
      account_id: "octo-demo",
      upstream_model: claude,
      cost: credits === null ? null : Math.round(credits * 1e9),
      ...more,
    }),
  );

test("what goes through the proxy agrees to the last billionth, and the sums are those of the rows", async () => {
  for (const model of [claude, exampleModels.small, claude]) {
    const answer = await proxy.post("/v1/chat/completions", {
      model,
      messages: [{ role: "user", content: "How much is this?" }],
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  const rows = proxy.rows();
  const own = rows.reduce((sum, row) => sum + row.cost!, 0);
  expect(own).toBeGreaterThan(0);
  const { totals, causes, days, rows: compared } = await books();
  expect(totals).toMatchObject({
    github_nano_credits: own,
    own_nano_credits: own,
    difference_nano_credits: 0,
    request_count: 3,
    unknown_count: 0,
  });
  expect(causes).toEqual([]);
  expect(days.map((each) => each.day)).toEqual([new Date(rows[0]!.started_at_ms).toISOString().slice(0, 10)]);
  expect(compared.map(({ model, request_count }) => [model, request_count]).sort()).toEqual([
    [claude, 2],
    [exampleModels.small, 1],
  ]);
});

test("what differs is named by day and model, with its likely cause and a sentence for each; sums are those of the rows", async () => {
  // Before the history begins.
  charged(at(3), 5);
  // The same on both sides, once as Auto chose it, and at the ends of a day by UTC.
  counted(at(5, 0), 1.25);
  counted(Date.parse(day(6)) - 1, 2.5);
  charged(at(5), 1.25);
  charged(at(5), 2.5, "Auto: Claude Sonnet 4.6");
  // Another client on a day of which the history has nothing, and beside a model of ours.
  charged(at(8), 40, "Claude Opus 9");
  counted(at(9), 1, { upstream_model: exampleModels.small });
  charged(at(9), 3, "GPT-6 Luna");
  // A row without a cost.
  counted(at(11), 2);
  counted(at(11), null, { request_id: "cut-off" });
  charged(at(11), 6);
  // Rounding, and more here than there.
  counted(at(13), 1.004);
  charged(at(13), 1);
  counted(at(14), 7);
  // Another account's rows are not this one's; a request that no account served is nobody's.
  counted(at(15), 100, { account_id: "plus-demo" });
  counted(at(15), 0, { account_id: null });
  proxy.history.flush();

  const { rows, totals, days, causes } = await books({ token, month });
  expect(
    rows.map((row) => [row.day, row.model, row.difference_nano_credits / 1e9, row.unknown_count, row.likely_cause]),
  ).toEqual([
    [day(14), claude, -7, 0, "counted_more"],
    [day(13), claude, -0.004, 0, "rounding"],
    [day(11), claude, 4, 1, "unknown_rows"],
    [day(9), exampleModels.small, 2, 0, "other_client"],
    [day(8), "Claude Opus 9", 40, 0, "other_client"],
    [day(5), claude, 0, 0, null],
    [day(3), "Claude Sonnet 4.6", 5, 0, "before_history"],
  ]);
  expect(rows.flatMap(({ unknown_requests }) => unknown_requests)).toEqual(["cut-off"]);
  const ofMonth = { from_ms: Date.parse(day(1)), to_ms: at(28), account_key };
  const { cost, request_count } = await proxy.history.totals(ofMonth);
  expect(totals).toMatchObject({ own_nano_credits: cost.credits, request_count, github_nano_credits: 58.75e9 });
  for (const name of ["github_nano_credits", "own_nano_credits", "difference_nano_credits"] as const) {
    expect(rows.reduce((sum, row) => sum + row[name], 0)).toBe(totals[name]);
    expect(days.reduce((sum, each) => sum + each[name], 0)).toBe(totals[name]);
  }
  expect(totals.difference_nano_credits).toBe(totals.github_nano_credits - totals.own_nano_credits);
  // The largest first.
  expect(causes.map(({ cause, row_count }) => [cause, row_count])).toEqual([
    ["other_client", 2],
    ["counted_more", 1],
    ["before_history", 1],
    ["unknown_rows", 1],
    ["rounding", 1],
  ]);
  expect(causes[0]!.about).toContain("Another client used the account");
  expect(causes.reduce((sum, each) => sum + each.difference_nano_credits, 0)).toBe(43.996e9);
});

test("no token is in the log, the answers or the data folder", async () => {
  const texts = [await (await ask({ token, month })).text(), await (await ask({})).text(), proxy.lines.join("\n")];
  const files = [...new Bun.Glob("**/*").scanSync({ cwd: proxy.home, dot: true })];
  for (const name of files) texts.push(await Bun.file(`${proxy.home}/${name}`).text());
  expect(files.length).toBeGreaterThan(0);
  for (const text of texts) expect(text).not.toMatch(/github_pat_|ghu_DEMO/);
});

const env = () => {
  writeFileSync(join(proxy.home, "running.json"), JSON.stringify({ url: proxy.url, pid: 1 }));
  return { DRAGOMAN_HOME: proxy.home };
};

test("dragoman usage reconcile prints the comparison, with a token of the environment or of stdin", async () => {
  const args = ["usage", "reconcile", month];
  const { code, stdout } = await inProcess(args, { ...env(), DRAGOMAN_BILLING_TOKEN: token });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^total +58\.8 +14\.8 +\+44/m);
  expect(stdout).toContain("+42: Another client used the account");
  expect(stdout).toContain("1 request here of unknown cost: cut-off.");
  await using piped = run([...args, "--token", "-", "--json"], { env: env() });
  piped.process.stdin.write(` ${token}\t\n`);
  piped.process.stdin.end();
  expect(await piped.exited).toBe(0);
  expect(JSON.parse(piped.stdout())).toEqual(await books({ token, month }));
});

test("dragoman usage reconcile says what is missing without a token, and takes none on the command line", async () => {
  const { code, stderr } = await inProcess(["usage", "reconcile"], env());
  expect(code).toBe(1);
  expect(stderr.replace(/\s+/g, " ")).toContain("may not read the plan of octo-demo (GitHub answers 403)");
  const typed = await inProcess(["usage", "reconcile", "--token", token], env());
  expect(typed.code).toBe(2);
  expect(typed.stderr).not.toContain(token);
});
