/**
 * Scenario: another model for what the client declares a request to be: only where the owner wrote a route, and never
 * by guess.
 */
import { afterAll, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { startProxy } from "../../support/proxy";

const { claude, haiku, small } = exampleModels;
const [account] = demoAccounts();
const routes = { "subagent:Explore": haiku, subagent: small, compaction: "gone-1" };
const proxy = await startProxy({
  demo: { accounts: [{ ...account!, quota: quotas.credits() }], generation: "C" },
  config: { routes, auth: { apiKeys: ["all", { name: "few", key: "few", models: [claude] }] } },
});
afterAll(() => proxy[Symbol.asyncDispose]());
// The lists are there from the start on.
await proxy.app.catalogue.models();

async function ask(headers: Record<string, string>, key = "all") {
  const body = { model: claude, max_tokens: 50, messages: [{ role: "user", content: "Look." }] };
  const response = await proxy.post("/v1/messages", body, { headers: { "x-api-key": key, ...headers } });
  await response.text();
  const { upstream_model, client_model, route } = proxy.rows()[0]!;
  return [response.status, client_model, upstream_model, route, response.headers.get("x-dragoman-model")];
}
const subagent = (type?: string) => ({
  "x-claude-code-request-class": "subagent",
  ...(type !== undefined && { "x-claude-code-agent-type": type }),
});

test.each<[string, Record<string, string>, string, string | null]>([
  ["the agent type's own route", subagent("Explore"), haiku, "subagent:Explore"],
  ["the route of all subagents", subagent("Plan"), small, "subagent"],
  ["the route of all subagents without a type", subagent(), small, "subagent"],
  ["the route of all subagents for Codex", { "x-codex-parent-thread-id": "t1" }, small, "subagent"],
  ["the route of all subagents for opencode", { "x-parent-session-id": "s1" }, small, "subagent"],
  ["no route for the conversation", { "x-claude-code-request-class": "main" }, claude, null],
  ["no route for who declares nothing", {}, claude, null],
  ["the client's own model where the route's is gone", { "x-claude-code-request-class": "compaction" }, claude, null],
])("%s", async (_, headers, model, route) => {
  expect(await ask(headers)).toEqual([200, claude, model, route, model === claude ? null : model]);
});

test("a key that may not use the route's model has the model that its client asked for", async () => {
  expect(await ask(subagent("Explore"), "few")).toEqual([200, claude, claude, null, null]);
});

test("what routes saved is the price of the model that the client asked for, less what was paid", async () => {
  proxy.app.history.flush();
  const { routes: saved } = (await (await fetch(`${proxy.url}/api/admin/advice`)).json()) as {
    routes: { route: string; request_count: number; saved_nano_credits: number }[];
  };
  expect(saved.map(({ route, request_count }) => [route, request_count])).toEqual([
    ["subagent:Explore", 1],
    ["subagent", 4],
  ]);
  const [row] = (await proxy.app.history.list({ route: "subagent:Explore" }, 1)).items;
  const { tokens } = (await proxy.app.catalogue.models()).find(({ id }) => id === claude)!.price;
  const asked = ((row!.input_tokens! * tokens!.input + row!.output_tokens! * tokens!.output) * 1e9) / tokens!.per;
  expect(saved[0]!.saved_nano_credits).toBeCloseTo(asked - row!.cost!, -2);
  const page = await (await fetch(`${proxy.url}/admin`)).text();
  expect(page).toContain("Change or remove it");
});
