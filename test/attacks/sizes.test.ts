/** Scenario: sizes and numbers of strangers are bounded where they come in. */
import { describe, expect, test } from "bun:test";
import { startProvider } from "../support/provider";
import { startProxy } from "../support/proxy";

const messages = [{ role: "user", content: "Hello" }];
const requests = (model: string): [string, object][] => [
  ["/v1/chat/completions", { model, messages }],
  ["/v1/responses", { model, input: "Hello" }],
  ["/v1/messages", { model, max_tokens: 9, messages }],
  ["/v1/messages/count_tokens", { model, messages }],
  ["/v1/embeddings", { model, input: "Hello" }],
  [`/v1beta/models/${encodeURIComponent(model)}:generateContent`, { contents: [{ parts: [{ text: "Hello" }] }] }],
];

test("a model's name of more than 512 characters is refused in every dialect, and stands in no row and no metric", async () => {
  await using proxy = await startProxy();
  for (const name of [`://${"a:".repeat(400)}`, `p/${"x".repeat(511)}`])
    for (const [path, body] of requests(name)) {
      const response = await proxy.post(path, body);
      expect([path, response.status, await response.text()]).toEqual([
        path,
        400,
        expect.stringContaining("no model's name has more than 512"),
      ]);
    }
  expect(proxy.rows().map((row) => row.client_model)).toEqual(Array.from({ length: 10 }, () => null));
  expect(proxy.lines.join("")).not.toContain("a:a:a");
  expect(await (await fetch(`${proxy.url}/metrics`)).text()).not.toContain("xxxx");
});

test("a model's name that a client makes up is no label of a metric until the provider lists it or has answered for it", async () => {
  await using provider = startProvider({ key: "k", auth: "x-api-key" });
  const own = { type: "anthropic", baseUrl: provider.url, apiKey: "k", models: ["listed"] };
  await using proxy = await startProxy({ config: { providers: { own } } });
  const ask = (model: string) =>
    proxy.post("/own/v1/messages", { model, max_tokens: 9, messages: [{ role: "user", content: "Hello" }] });
  const refuse = () => provider.next(() => Response.json({ type: "error", error: {} }, { status: 404 }));
  const label = `long-${"x".repeat(400)}`;
  for (const model of ["made-up", "listed", "served"]) {
    refuse();
    expect((await ask(model)).status).toBe(404);
  }
  const metrics = async () => (await fetch(`${proxy.url}/metrics`)).text();
  const before = await metrics();
  expect(before).not.toMatch(/"made-up"|"served"/);
  expect(before).toMatch(/model="other",[^}]*upstream="own"/);
  expect(before).toContain('model="listed"');
  for (const model of ["served", label]) expect((await ask(model)).status).toBe(200);
  const after = await metrics();
  expect(after).toContain('model="served"');
  expect(after).toContain(`model="${label.slice(0, 100)}"`);
  expect(after).not.toContain(label.slice(0, 101));
});

describe("counts that no window could hold", () => {
  const messages = [{ role: "user", content: "Hello" }];
  const price = { input: 3, output: 15 };

  test.each([
    ["9e18 tokens", { input_tokens: 9e18, output_tokens: 3 }],
    ["1e308 tokens", { input_tokens: 1e308, output_tokens: 3 }],
    ["twenty times its window", { input_tokens: 20_000_000, output_tokens: 3 }],
    ["half a token", { input_tokens: 5.5, output_tokens: 3 }],
  ])("are unknown and use up no budget: %s", async (_name, usage) => {
    await using provider = startProvider({ key: "k", auth: "x-api-key" });
    const models = [{ id: "m", price, context: 1_000_000 }];
    await using proxy = await startProxy({
      config: {
        providers: { own: { type: "anthropic", baseUrl: provider.url, apiKey: "k", models } },
        budgets: [{ name: "all", unit: "credits", limit: 1_000, per: "month" }],
      },
    });
    const reply = {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "m", stop_reason: "end_turn", stop_sequence: null },
      ...{ content: [{ type: "text", text: "Hi." }], usage },
    };
    for (const path of ["/own/v1/messages", "/v1/messages", "/v1/chat/completions"]) {
      provider.next(() => Response.json(reply));
      const model = path === "/own/v1/messages" ? "m" : "own/m";
      expect([path, (await proxy.post(path, { model, max_tokens: 9, messages })).status]).toEqual([path, 200]);
      const [row] = proxy.rows();
      expect(row).toMatchObject({ input_tokens: null, cost: null });
      expect(JSON.parse(row!.fixups)).toContain("usage-unbelievable");
    }
    const metrics = await (await fetch(`${proxy.url}/metrics`)).text();
    const tokens = [...metrics.matchAll(/^dragoman_(?:tokens_total|request_tokens_sum){.*} (.*)$/gm)];
    expect(tokens.length).toBeGreaterThan(0);
    for (const [, count] of tokens) expect(Number(count)).toBeLessThan(100);
    const totals = await (await fetch(`${proxy.url}/api/admin/totals`)).json();
    expect(totals).toMatchObject({ input_tokens: null, cost: {} });
    expect((await proxy.post("/v1/messages", { model: "claude-haiku-4.5", max_tokens: 9, messages })).status).toBe(200);
  });
});
