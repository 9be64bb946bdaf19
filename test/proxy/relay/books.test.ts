/** Scenario: the books of a session like Claude Code's: what dragoman writes down against what the upstream charges. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { drifted } from "../../support/drifted";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

/** Several turns of one conversation, each with the whole of what was before, as Claude Code sends them. */
function turns(model: string, start: number) {
  const mark = { cache_control: { type: "ephemeral" } };
  const system = [{ type: "text", text: "You are careful. ".repeat(start), ...mark }];
  const messages: object[] = [];
  return [1, 2, 3, 4].map((turn) => {
    const text = `Turn ${turn}. ${"Read this file again. ".repeat(400)}`;
    messages.push({ role: "user", content: [{ type: "text", text, ...mark }] });
    const body = { model, max_tokens: 1000, system, messages: structuredClone(messages) };
    messages.push({ role: "assistant", content: [{ type: "text", text: `Done ${turn}.` }] });
    return body;
  });
}

const sessions = [
  // Texts as prices, with the price of written tokens.
  { model: "claude-opus-5.5", start: 2_000, boundary: 0 },
  { model: "claude-sonnet-4.6", start: 2_000, boundary: 0 },
  // The long tier, through another dialect.
  { model: "gpt-6-sol", start: 80_000, boundary: 272_000 },
  { model: "grok-4.7", start: 60_000, boundary: 200_000 },
  { model: "gpt-6-luna", start: 80_000, boundary: 272_000 },
];

for (const stated of [true, false])
  describe(`the books of generation C, ${stated ? "with" : "without"} the upstream's own statement of the charge`, () => {
    let proxy: RunningProxy;
    beforeAll(async () => {
      const [octo] = demoAccounts();
      proxy = await startProxy({
        demo: {
          generation: "C",
          accounts: [{ ...octo!, plan: "individual_pro", quota: quotas.tokenBilling() }],
          change: stated ? undefined : drifted("no-cost"),
        },
        config: { maxPromptTokens: { "gpt-6-sol": 900_000, "gpt-6-luna": 900_000, "grok-4.7": 900_000 } },
      });
    });
    afterAll(() => proxy[Symbol.asyncDispose]());

    test.each(sessions)(
      "a session with $model costs what the account is charged, to the nano-credit",
      async ({ model, start, boundary }) => {
        const { premium } = proxy.demo.accounts[0]!.quota;
        const before = premium.creditsUsed ?? 0;
        const had = proxy.rows().length;
        for (const body of turns(model, start)) expect((await proxy.post("/v1/messages", body)).status).toBe(200);
        await until(() => proxy.rows().length === had + 4, "all four rows are written");
        const rows = proxy.rows().slice(0, 4);
        expect(rows.some(({ cached_tokens }) => (cached_tokens ?? 0) > 0)).toBe(true);
        expect(rows.every(({ input_tokens }) => (input_tokens ?? 0) > boundary)).toBe(true);
        const booked = rows.reduce((sum, { cost }) => sum + (cost ?? Number.NaN), 0);
        expect(booked).toBe(Math.round(((premium.creditsUsed ?? 0) - before) * 1e9));
      },
    );
  });

/** Model lists in which the prices are told in another way. */
describe("prices that a list does not tell", () => {
  const listed = (id: string, billing: object) => ({
    id,
    object: "model",
    name: id,
    vendor: "OpenAI",
    version: id,
    model_picker_enabled: true,
    supported_endpoints: ["/responses"],
    billing,
    capabilities: { family: id, type: "chat", limits: {}, supports: {} },
  });
  const start = async (models: object[], quota = quotas.pro()) => {
    const [octo] = demoAccounts();
    const proxy = await startProxy({
      demo: { generation: "C", accounts: [{ ...octo!, quota }], change: drifted("no-cost") },
    });
    proxy.demo.intercept("/models", () => Response.json({ object: "list", data: models }), 1_000);
    return proxy;
  };
  const ask = (proxy: RunningProxy, model: string) =>
    proxy.post("/v1/responses", { model, input: "Hi.", max_output_tokens: 100 });
  const tier = { input_price: 250, output_price: 1500, cache_read_price: 25 };
  const dearer = { input_price: 500, output_price: 2250, cache_read_price: 50 };

  test("make the cost of a row unknown, not zero, unless the answer states the charge", async () => {
    await using proxy = await start([listed(exampleModels.gpt, { token_prices: { default: { price: 5 } } })]);
    expect((await ask(proxy, exampleModels.gpt)).status).toBe(200);
    expect(proxy.rows()[0]).toMatchObject({ cost: null, cost_unit: null });
  });

  test("do not make a model free: an account whose quota is used up is not asked", async () => {
    const free = listed("gpt-free", { token_prices: { batch_size: 0 } });
    const models = [listed(exampleModels.gpt, {}), { ...free, supported_endpoints: ["/chat/completions"] }];
    await using proxy = await start(models, quotas.exhausted());
    await proxy.app.accounts[0]!.quota();
    const sent = () => proxy.demo.journal.filter(({ path }) => path === "/responses").length;
    expect((await ask(proxy, exampleModels.gpt)).status).toBe(429);
    expect(sent()).toBe(0);
    const choices = [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hi." } }];
    proxy.demo.intercept("/chat/completions", () => Response.json({ id: "x", object: "chat.completion", choices }));
    expect((await ask(proxy, free.id)).status).toBe(200);
  });

  test("leave the boundary of the long tier open: the dearer price counts, and the log says so once", async () => {
    const models = [
      listed(exampleModels.gpt, { token_prices: { batch_size: 1_000_000, default: tier, long_context: dearer } }),
    ];
    let now = Date.now();
    const [octo] = demoAccounts();
    await using proxy = await startProxy({
      demo: { generation: "C", accounts: [octo!], change: drifted("no-cost") },
      clock: { now: () => now },
    });
    proxy.demo.intercept("/models", () => Response.json({ object: "list", data: models }), 1_000);
    expect((await ask(proxy, exampleModels.gpt)).status).toBe(200);
    const [row] = proxy.rows();
    const { input_tokens, output_tokens } = row!;
    expect(row!.cost).toBe(Math.round((input_tokens! * 500 + output_tokens! * 2250) * 1000));
    now += 60_000;
    expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(200);
    const warnings = proxy.lines.filter((line) => line.includes("but not from where on"));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(exampleModels.gpt);
    const page = await (await fetch(`${proxy.url}/admin/models`)).text();
    expect(page).toContain("does not say from where on they apply");
  });
});

test.each([
  ["a model that does not exist", "no-such-model", "Hi.", 404, 0],
  ["a refusal by the upstream", exampleModels.flash, "[demo: 400-body]", 400, 0],
  ["a failure of the upstream, whose charge nobody knows", exampleModels.flash, "[demo: 500]", 500, null],
] as const)(
  "a request that nobody accepted costs nothing and used no tokens, unless that is not known: %s",
  async (_, model, content, status, used) => {
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const messages = [{ role: "user", content }];
    expect((await proxy.post("/v1/chat/completions", { model, messages })).status).toBe(status);
    expect(proxy.rows()[0]).toMatchObject({ cost: used, input_tokens: used, output_tokens: used });
    expect(proxy.rows()[0]!.tokens_estimated).toBe(0);
  },
);

test("a request that nobody accepted: saved nothing where nothing was read from the cache, whether the price is known or not", async () => {
  await using proxy = await startProxy();
  const messages = [{ role: "user", content: "Hi." }];
  await proxy.post("/v1/chat/completions", { model: "claude-sonnet-4.6", messages });
  proxy.rows();
  const report = (await (await fetch(`${proxy.url}/api/admin/cache`)).json()) as {
    models: { cached_tokens: number; saved_nano_credits: number | null }[];
  };
  expect(report.models).toMatchObject([{ cached_tokens: 0, saved_nano_credits: 0 }]);
});
