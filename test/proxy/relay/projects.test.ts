/** Scenario: projects: by a header or by the address, in the history, the bill and the budgets. */
import { afterAll, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type Ask, paths } from "../../access/paths";
import { startProxy } from "../../support/proxy";

const [account] = demoAccounts();
const proxy = await startProxy({
  demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }], generation: "C" },
  config: {
    budgets: [
      { name: "race", unit: "requests", limit: 37, per: "month", scope: { project: "race" } },
      { name: "apart", unit: "requests", limit: 2, per: "month", scope: { project: "each-*" }, each: "project" },
    ],
  },
});
afterAll(() => proxy[Symbol.asyncDispose]());

const body = { model: exampleModels.small, messages: [{ role: "user", content: "hello" }] };
const ask = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await proxy.post(path, body, { headers });
  await answer.text();
  return answer.status;
};

test("the header and the address name a project, and the path of the row is the client's", async () => {
  expect(await ask("/v1/chat/completions", { "x-dragoman-project": "acme" })).toBe(200);
  expect(await ask("/p/acme/v1/chat/completions")).toBe(200);
  expect(await ask("/p/web%20shop/v1/chat/completions")).toBe(200);
  expect(await ask("/v1/chat/completions")).toBe(200);
  expect(proxy.rows().map(({ project, path }) => [project, path])).toEqual(
    [null, "web shop", "acme", "acme"].map((project) => [project, "/v1/chat/completions"]),
  );
  const { groups } = (await (await fetch(`${proxy.url}/api/admin/statistics?by=project`)).json()) as {
    groups: { key: { project: string | null }; request_count: number }[];
  };
  expect(groups.map(({ key, request_count }) => [key.project, request_count])).toEqual([
    ["acme", 2],
    ["web shop", 1],
    [null, 1],
  ]);
});

test("a name that cannot be shown is refused, and nothing is sent", async () => {
  const sent = proxy.demo.journal.length;
  expect(await ask("/v1/chat/completions", { "x-dragoman-project": "<script>" })).toBe(400);
  expect(await ask("/p/%3Cscript%3E/v1/chat/completions")).toBe(404);
  expect(await ask("/p/acme/v1/nothing")).toBe(404);
  expect(proxy.demo.journal.length).toBe(sent);
});

test("the address of a project serves what tools ask, and nothing of the server's own", async () => {
  const statusOf = async ({ method, path }: Ask) => {
    const init =
      method === "POST" ? { method, body: "{", headers: { "content-type": "application/json" } } : { method };
    const answer = await fetch(`${proxy.url}/p/tools${path}`, { ...init, redirect: "manual" });
    return [answer.status, await answer.text()] as const;
  };
  const others = [...paths.open, ...paths.token, ...paths.metrics, ...paths.admin, ...paths.page, ...paths["sign-in"]];
  const usage = paths.model.filter(({ path }) => !/^\/(?:[\w-]+\/)?v1(?:beta)?\/|^\/usage\/line$/.test(path));
  expect(usage.map(({ path }) => path)).toEqual(["/usage", "/usage/0", "/managed/settings", "/api/oauth/usage"]);
  for (const ask of [...others, ...usage, { method: "GET", path: "/admin/admin.css" }]) {
    const [status, text] = await statusOf(ask);
    expect([ask.path, status, text]).toEqual([ask.path, 404, expect.stringContaining("No such path: /p/tools/")]);
  }
  for (const ask of paths.model.filter((each) => !usage.includes(each))) {
    const [, text] = await statusOf(ask);
    expect([ask.path, text]).not.toEqual([ask.path, expect.stringContaining("No such path")]);
  }
  // Base URLs may lack the version.
  expect(await ask("/p/tools/chat/completions")).toBe(200);
  expect((await fetch(`${proxy.url}/p/tools/usage/line`)).status).toBe(200);
  const preflight = await fetch(`${proxy.url}/p/tools/admin`, { method: "OPTIONS" });
  expect(preflight.status).toBe(404);
});

test("the header does not go upstream", () => {
  expect(proxy.demo.journal.filter(({ headers }) => headers["x-dragoman-project"])).toEqual([]);
});

test("the bill of a project is a line for each day", async () => {
  const answer = await fetch(`${proxy.url}/api/admin/bill?project=acme`);
  expect(answer.headers.get("content-type")).toStartWith("text/csv");
  const [head, line, ...rest] = (await answer.text()).split("\r\n");
  expect([head!.split(",").length, rest]).toEqual([8, [""]]);
  const credits = proxy.rows().reduce((sum, row) => sum + (row.project === "acme" ? row.cost! : 0), 0) / 1e9;
  const [, prompts, requests, unit, billed, dollars] = line!.split(",");
  expect([prompts, requests, unit, billed]).toEqual(["0", "2", "credits", String(credits)]);
  expect(Number(dollars)).toBeCloseTo(credits / 100, 6);
});

test("400 requests at once: the budget of a project lets through what it allows, and no other project pays", async () => {
  const statuses = await Promise.all(Array.from({ length: 400 }, () => ask("/p/race/v1/chat/completions")));
  expect(statuses.filter((status) => status === 200)).toHaveLength(37);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(await ask("/p/acme/v1/chat/completions")).toBe(200);
}, 60_000);

test("each project may have an amount of its own", async () => {
  const of = (project: string) => ask("/v1/chat/completions", { "x-dragoman-project": project });
  expect([await of("each-1"), await of("each-1"), await of("each-1"), await of("each-2")]).toEqual([
    200, 200, 429, 200,
  ]);
  const { items } = (await (await fetch(`${proxy.url}/api/admin/budgets?budget=apart`)).json()) as {
    items: { holders: { items: { name: string; used: number; member: null }[] } }[];
  };
  expect(items[0]!.holders.items.map(({ name, used, member }) => [name, used, member])).toEqual([
    ["each-1", 2, null],
    ["each-2", 1, null],
  ]);
});
