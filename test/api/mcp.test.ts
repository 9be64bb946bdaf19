/** `POST /mcp`: what a coding tool learns of quotas, costs and refusals, by the official client of the protocol. */
import { afterAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { addMember, withTeamStores } from "../support/members";
import { startProxy } from "../support/proxy";
import { describeWithDatabases } from "../support/shared-postgres";
import { individuals, startTeam } from "../support/teams";
import { until } from "../support/until";

const canary = "xylophonecanary";
const keys = { laptop: "laptop-secret-1234", ci: "ci-secret-5678" };

const [account] = demoAccounts();
const proxy = await startProxy({
  demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }], generation: "C" },
  config: {
    auth: {
      apiKeys: [
        { name: "laptop", key: keys.laptop, budgets: [{ unit: "credits", limit: 100, per: "month" }] },
        { name: "ci", key: keys.ci, models: ["gpt-5-mini"] },
      ],
    },
    budgets: [
      { name: "team", unit: "requests", limit: 1000, per: "month" },
      { name: "for-ci", unit: "requests", limit: 50, per: "day", scope: { key: "ci" } },
    ],
  },
});
await say("laptop", "claude-sonnet-4-6", "p-1");
await say("laptop", "claude-sonnet-4-6", "p-2", "shop");
await say("ci", "gpt-5-mini", "p-3");
await say("ci", "claude-sonnet-4-6", "p-4");
proxy.rows();
afterAll(() => proxy[Symbol.asyncDispose]());

/** @returns The request's id. */
async function say(key: keyof typeof keys, model: string, prompt: string, project?: string): Promise<string> {
  const answer = await proxy.post(
    "/v1/messages",
    { model, max_tokens: 50, messages: [{ role: "user", content: `say ${canary}` }] },
    {
      headers: {
        "x-api-key": keys[key],
        "x-claude-code-prompt-id": prompt,
        ...(project && { "x-dragoman-project": project }),
      },
    },
  );
  await answer.text();
  return answer.headers.get("x-request-id")!;
}

interface Answer {
  text: string;
  isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's JSON, each of whose members a test names
  json: any;
}

/** @param key The name of one of `keys`, or another key itself. */
async function connect(key: string | undefined, url = proxy.url, mode: "legacy" | "auto" = "legacy") {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const headers: Record<string, string> =
    key === undefined ? {} : { authorization: `Bearer ${key in keys ? keys[key as keyof typeof keys] : key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  return {
    client,
    async ask(name: string, given: Record<string, unknown> = {}): Promise<Answer> {
      const { content, isError } = await client.callTool({ name, arguments: given });
      const [first] = content as { text: string }[];
      const text = first!.text;
      return { text, isError: isError === true, json: text.startsWith("{") ? JSON.parse(text) : undefined };
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

const names = ["what_is_left", "what_was_spent", "what_prompts_cost", "models_and_prices", "why_refused"];

describe.each(["legacy", "auto"] as const)("a client that negotiates its revision of the protocol by %s", (mode) => {
  test("lists the tools, which change nothing, and calls each", async () => {
    await using asker = await connect("laptop", proxy.url, mode);
    expect(asker.client.getServerCapabilities()).toEqual({ tools: { listChanged: false } });
    const { tools } = await asker.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(names);
    for (const { name, description, annotations } of tools) {
      expect(annotations?.readOnlyHint).toBe(true);
      expect(description).not.toBe("");
      const answer = await asker.ask(name);
      expect([name, answer.isError, typeof answer.json]).toEqual([name, false, "object"]);
    }
  });
});

test("what is left: the accounts' quota, and the budgets that limit the key", async () => {
  await using laptop = await connect("laptop");
  const { json } = await laptop.ask("what_is_left");
  const cost = costOf("laptop");
  expect(json.accounts).toMatchObject([
    { account_id: "octo-demo", unit: "credits", runtime: { entitlement: 1500 }, reset_at: expect.stringMatching(/Z$/) },
  ]);
  expect(json.budgets.map(({ name }: { name: string }) => name)).toEqual(["team", expect.stringContaining("laptop")]);
  expect(json.budgets[1]).toMatchObject({ limit: 100, unit: "credits", exhausted: false });
  expect(json.budgets[1].used).toBeCloseTo(cost / 1e9, 6);
  await using ci = await connect("ci");
  const seen = (await ci.ask("what_is_left")).json.budgets as { name: string }[];
  expect(seen.map(({ name }) => name)).toEqual(["team", "for-ci"]);
});

const costOf = (key: string) =>
  proxy.rows().reduce((sum, row) => sum + (row.key_name === key ? (row.nano_credits ?? 0) : 0), 0);

test.each([
  ["day", undefined],
  ["model", 1],
  ["project", 2],
  ["prompt", 2],
])("what was spent by %s adds up to the key's rows, and to nobody else's", async (by, count) => {
  await using laptop = await connect("laptop");
  const { json } = await laptop.ask("what_was_spent", { by });
  // The rows may be of two days.
  if (by !== "day") expect(json.groups.length).toBe(count);
  const sum = json.groups.reduce((total: number, group: { credits: number }) => total + group.credits, 0);
  expect(costOf("laptop")).toBeGreaterThan(0);
  expect(sum).toBeCloseTo(costOf("laptop") / 1e9, 9);
  expect(json.total).toMatchObject({ request_count: 2, error_count: 0, unknown_cost_count: 0 });
  expect(json.total.credits).toBeCloseTo(sum, 9);
});

test("what the last prompt cost, and why", async () => {
  await using laptop = await connect("laptop");
  const { json } = await laptop.ask("what_prompts_cost", { limit: 1 });
  const [row] = proxy.rows().filter(({ key_name }) => key_name === "laptop");
  expect(json.prompts).toMatchObject([{ project: "shop", key_name: "laptop", request_count: 1 }]);
  expect(json.prompts[0].credits).toBeCloseTo(row!.nano_credits! / 1e9, 9);
  expect(json.prompts[0].why).toMatch(/^All of it /);
  const ofProject = await laptop.ask("what_prompts_cost", { project: "none" });
  expect(ofProject.json.prompts).toEqual([]);
});

test("the models are those that the key may use, with their prices", async () => {
  await using ci = await connect("ci");
  const { json } = await ci.ask("models_and_prices");
  expect(json.models.map(({ id }: { id: string }) => id)).toEqual(["gpt-5-mini"]);
  await using laptop = await connect("laptop");
  const found = (await laptop.ask("models_and_prices", { search: "SONNET-4.6" })).json.models;
  expect(found).toMatchObject([{ id: "claude-sonnet-4.6", costs: expect.stringContaining("credits per M") }]);
});

test("why a request was refused, and nothing of one with another key", async () => {
  const id = await say("ci", "claude-sonnet-4-6", "p-4");
  proxy.rows();
  await using ci = await connect("ci");
  const { json } = await ci.ask("why_refused");
  expect(json.requests[0]).toMatchObject({ request_id: id, error_message: expect.stringContaining("claude-sonnet") });
  expect((await ci.ask("why_refused", { request_id: id })).json).toMatchObject({ request_id: id, running: false });
  await using laptop = await connect("laptop");
  expect((await laptop.ask("why_refused")).json.requests).toEqual([]);
  const refused = await laptop.ask("why_refused", { request_id: id });
  expect([refused.isError, refused.text]).toEqual([true, "The history holds no request with this id."]);
});

test("no answer holds a secret or a word of a prompt", async () => {
  const { githubToken } = proxy.demo.accounts[0]!;
  for (const key of ["laptop", "ci"] as const) {
    await using asker = await connect(key);
    for (const name of names) {
      const { text } = await asker.ask(name);
      for (const secret of [canary, githubToken, ...Object.values(keys)]) expect(text).not.toContain(secret);
    }
  }
});

test("without the key, with a wrong one, and with another method it is refused; a wrong argument is said", async () => {
  const call = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  expect((await proxy.post("/mcp", call)).status).toBe(401);
  expect((await proxy.post("/mcp", call, { headers: { authorization: "Bearer wrong" } })).status).toBe(401);
  const auth = { authorization: `Bearer ${keys.laptop}` };
  const answer = await fetch(`${proxy.url}/mcp`, { headers: { ...auth, accept: "text/event-stream" } });
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, expect.stringContaining("POST")]);
  expect((await proxy.post("/mcp", "no JSON", { headers: auth })).status).toBe(400);
  await using asker = await connect("laptop");
  const wrong = await asker.ask("what_was_spent", { by: "colour" });
  expect([wrong.isError, wrong.text]).toEqual([true, expect.stringContaining("by")]);
});

test("where no key is configured, everything is this person's", async () => {
  await using own = await startProxy();
  await own.post("/v1/chat/completions", { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
  own.rows();
  await using asker = await connect(undefined, own.url);
  expect((await asker.ask("what_was_spent")).json.total.request_count).toBe(1);
  const foreign = { headers: { origin: "https://evil.example" } };
  expect((await own.post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }, foreign)).status).toBe(403);
});

describeWithDatabases("members of a team", (databases) => {
  test("a member is shown the member's own accounts and requests, with any of the member's keys", async () => {
    await using team = await startTeam(databases);
    const [anna, ben] = await withTeamStores(team, async (stores) => [
      await addMember(stores, team, "anna", individuals("anna-hub")),
      await addMember(stores, team, "ben", individuals("ben-hub")),
    ]);
    await using server = await team.server();
    const ask = (key: string) =>
      server.post(
        "/v1/chat/completions",
        { model: "gpt-5-mini", messages: [{ role: "user", content: canary }] },
        { authorization: `Bearer ${key}`, "x-claude-code-prompt-id": `prompt of ${key}` },
      );
    const [first, second] = await Promise.all([ask(anna!.key), ask(ben!.key)]);
    await Promise.all([first!.text(), second!.text()]);
    const bens = second!.headers.get("x-request-id")!;
    await using asker = await connect(anna!.key, server.url);
    await until(
      async () => (await asker.ask("what_was_spent")).json.total.request_count === 1,
      "anna's request is in the history",
    );
    expect((await asker.ask("what_prompts_cost")).json.prompts).toMatchObject([{ member: anna!.id }]);
    expect((await asker.ask("what_is_left")).json.accounts).toMatchObject([{ account_id: "anna-hub" }]);
    expect((await asker.ask("why_refused", { request_id: bens })).isError).toBe(true);
    for (const name of names) expect((await asker.ask(name)).text).not.toMatch(/ben|octo-demo/);
  });
});
