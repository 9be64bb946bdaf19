/**
 * Scenario: the address of a project, and many requests of one at once; `fixtures/scenes/portions.txt` has projects in the
 * history, the bill and the budgets.
 */
import { afterAll, expect, test } from "bun:test";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type Ask, paths } from "../../access/paths";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy({
  demo: { generation: "C" },
  config: { budgets: [{ name: "race", unit: "requests", limit: 37, per: "month", scope: { project: "race" } }] },
});
afterAll(() => proxy[Symbol.asyncDispose]());

const ask = async (path: string) => {
  const messages = [{ role: "user", content: "hello" }];
  const answer = await proxy.post(path, { model: exampleModels.small, messages });
  await answer.text();
  return answer.status;
};

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

test("400 requests at once: the budget of a project lets through what it allows, and no other project pays", async () => {
  const statuses = await Promise.all(Array.from({ length: 400 }, () => ask("/p/race/v1/chat/completions")));
  expect(statuses.filter((status) => status === 200)).toHaveLength(37);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(await ask("/p/acme/v1/chat/completions")).toBe(200);
}, 60_000);
