/**
 * Rows: what is known of a cost when not all of it is: of numbers that the upstream no longer states, and of replies
 * that were cut.
 */
import { describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { eventStream } from "../../support/event-stream";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { readSamples, valueIn } from "../../support/samples";
import { until } from "../../support/until";

const start = (config: object = {}) => {
  const [account] = demoAccounts();
  return startProxy({
    demo: { generation: "C", accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }] },
    config,
  });
};
// biome-ignore lint/suspicious/noExplicitAny: the answers of many endpoints
const json = async (proxy: RunningProxy, path: string): Promise<any> => (await fetch(`${proxy.url}${path}`)).json();
const text = async (proxy: RunningProxy, path: string) => (await fetch(`${proxy.url}${path}`)).text();

const usages = {
  "/responses": {
    model: exampleModels.gpt,
    body: { input: "Hi." },
    answer: (usage: object) => ({
      ...{ id: "resp_1", object: "response", created_at: 1, model: exampleModels.gpt, status: "completed", usage },
      output: [
        {
          ...{ type: "message", id: "msg_1", role: "assistant", status: "completed" },
          content: [{ type: "output_text", text: "Yes.", annotations: [] }],
        },
      ],
    }),
    stated: { input_tokens: 20_000, output_tokens: 100, input_tokens_details: { cached_tokens: 19_000 } },
    renamed: { input_tokens: 20_000, output_tokens: 100, prompt_tokens_details: { cached_tokens: 19_000 } },
  },
  "/chat/completions": {
    model: exampleModels.flash,
    body: { messages: [{ role: "user", content: "Hi." }] },
    answer: (usage: object) => ({
      ...{ id: "c1", object: "chat.completion", created: 1, model: exampleModels.flash, usage },
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Yes." } }],
    }),
    stated: { prompt_tokens: 20_000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 19_000 } },
    renamed: { prompt_tokens: 20_000, completion_tokens: 100, input_tokens_details: { cached_tokens: 19_000 } },
  },
} as const;

test.each(Object.keys(usages) as (keyof typeof usages)[])(
  "cached tokens that the upstream no longer states are not charged at the full price, from the first reply that lacks them: %s",
  async (path) => {
    const { model, body, answer, stated, renamed } = usages[path];
    await using proxy = await start({ budgets: [budget] });
    const ask = async (usage: object) => {
      proxy.demo.intercept(path, () => Response.json(answer(usage)));
      const response = await proxy.post(`/v1${path}`, { model, ...body });
      expect(response.status).toBe(200);
      await response.text();
      return proxy.rows()[0]!;
    };
    for (let at = 0; at < 4; at++) await ask(stated);
    const [{ price }] = (await json(proxy, "/api/admin/models")).items.filter(({ id }: { id: string }) => id === model);
    const { input, cached_input: cached, output, per } = price.tokens;
    const nano = (credits: number) => Math.round((credits * 1e9) / per);
    expect(proxy.rows()[0]).toMatchObject({
      cost: nano(19_000 * cached + 1_000 * input + 100 * output),
      cost_at_least: 0,
    });
    const row = await ask(renamed);
    expect(row).toMatchObject({
      ...{ input_tokens: 20_000, cached_tokens: null, tokens_estimated: 0 },
      ...{ cost: nano(20_000 * cached + 100 * output), cost_at_least: 1 },
    });
    // A budget counts what such a request was expected to cost, if that is more.
    const { used } = (await json(proxy, "/api/admin/budgets")).items[0];
    const sum = proxy.rows().reduce((all, { cost }) => all + cost!, 0);
    expect(used * 1e9).toBeGreaterThanOrEqual(sum - 1);
    const metrics = readSamples(await text(proxy, "/metrics"));
    expect(valueIn(metrics, "dragoman_cost_unknown_total", { model })).toBe(1);
    // A number that comes back is exact again.
    expect(await ask(stated)).toMatchObject({ cost_at_least: 0 });
  },
);

test("cached tokens that the upstream no longer states leave a charge that the upstream states as it is", async () => {
  const { model, body, answer, stated, renamed } = usages["/responses"];
  await using proxy = await start();
  for (const usage of [stated, stated, stated, renamed]) {
    proxy.demo.intercept("/responses", () =>
      Response.json({ ...answer(usage), copilot_usage: { total_nano_aiu: 777, token_details: [] } }),
    );
    await (await proxy.post("/v1/responses", { model, ...body })).text();
  }
  expect(proxy.rows()[0]).toMatchObject({ cost: 777, cost_at_least: 0, cached_tokens: null });
});

const budget = { name: "all", scope: {}, unit: "credits", limit: 1e6, per: "month", then: "warn", warn: [] };

describe("a reply that was cut", () => {
  const model = "claude-haiku-4.5";
  const session = { "x-claude-code-session-id": "5b3c1c1e-52c4", "x-claude-code-prompt-id": "p-1" };
  const prompt = {
    model,
    max_tokens: 500,
    stream: true,
    messages: [{ role: "user", content: "Tell me a long story." }],
  };
  const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const begun = (usage: object) =>
    event("message_start", {
      message: { id: "msg_1", type: "message", role: "assistant", model, content: [], usage, stop_reason: null },
    }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Once upon a time" } });
  const ended = (usage: object) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", { delta: { stop_reason: "end_turn" }, usage }) +
    event("message_stop", {});
  const full = { input_tokens: 3, cache_read_input_tokens: 9_000, cache_creation_input_tokens: 0, output_tokens: 80 };
  const guess = { input_tokens: 4_000, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 1 };

  /** Sends a beginning, and then nothing more; the stream of the upstream ends, or its client leaves. */
  async function cutBy(proxy: RunningProxy, who: "client" | "upstream") {
    const before = proxy.rows().length;
    const leave = new AbortController();
    proxy.demo.intercept("/v1/messages", () =>
      who === "upstream"
        ? eventStream(begun(guess))
        : new Response(
            new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(begun(guess))) }),
            { headers: { "content-type": "text/event-stream" } },
          ),
    );
    const response = await proxy.post("/v1/messages", prompt, { headers: session, signal: leave.signal });
    const reader = response.body!.getReader();
    await reader.read();
    if (who === "client") leave.abort();
    else while (!(await reader.read()).done);
    await until(() => proxy.rows().length > before, "the row is written");
    return proxy.rows()[0]!;
  }

  test.each(["client", "upstream"] as const)(
    "costs at least what is known, and is no verdict on the cache: %s",
    async (who) => {
      await using proxy = await start();
      proxy.demo.intercept("/v1/messages", () => eventStream(begun(full) + ended(full)));
      await (await proxy.post("/v1/messages", prompt, { headers: session })).text();
      expect(proxy.rows()[0]).toMatchObject({ input_tokens: 9_003, cost_at_least: 0, tokens_estimated: 0 });
      const [{ price }] = (await json(proxy, "/api/admin/models")).items.filter(
        ({ id }: { id: string }) => id === model,
      );
      const row = await cutBy(proxy, who);
      expect(row).toMatchObject({
        ...{ input_tokens: 4_000, output_tokens: null, tokens_estimated: 1, cache_miss: null },
        ...{ cost: Math.round((4_000 * price.tokens.input * 1e9) / price.tokens.per), cost_at_least: 1 },
      });

      const { items } = await json(proxy, "/api/admin/prompts");
      expect([items[0].cost_at_least, items[0].unknown_cost_count]).toEqual([true, 0]);
      expect((await json(proxy, "/api/admin/totals")).cost_at_least).toBe(true);
      expect((await json(proxy, "/api/admin/totals?has_error=0")).cost_at_least).toBe(false);
      expect(await text(proxy, "/api/admin/export?format=csv")).toMatch(/cost_at_least.*\r\n.*true/);
      expect(await text(proxy, "/usage/line?session=5b3c1c1e-52c4")).toMatch(/^≥ \S+ cr prompt · ≥ \S+ cr session/);
      for (const path of ["/admin", "/admin/requests", "/admin/prompts", `/admin/prompts/${items[0].prompt}`])
        expect([path, (await text(proxy, path)).includes("≥ ")]).toEqual([path, true]);
      expect(await text(proxy, `/admin/requests/${row.request_id}`)).toContain("≥ ");
    },
  );
});
