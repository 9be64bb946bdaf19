/**
 * Rows: what is known of a cost when not all of it is: of replies that were cut; `fixtures/scenes/costs.txt` has numbers
 * that the upstream no longer states.
 */
import { describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { eventStream } from "../../support/event-stream";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("costs");

const start = () => {
  const [account] = demoAccounts();
  return startProxy({
    demo: { generation: "C", accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }] },
  });
};
// biome-ignore lint/suspicious/noExplicitAny: the answers of many endpoints
const json = async (proxy: RunningProxy, path: string): Promise<any> => (await fetch(`${proxy.url}${path}`)).json();
const text = async (proxy: RunningProxy, path: string) => (await fetch(`${proxy.url}${path}`)).text();

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
