/** Scenario: numbers of tokens that a Messages client requires and an upstream does not report, or not in time. */
import { describe, expect, test } from "bun:test";
import { openTokenizer } from "../../../src/proxy/tokens/tokenizer";
import { offerOnly } from "../../support/catalogue";
import { eventStream, eventsIn } from "../../support/event-stream";
import { startProxy } from "../../support/proxy";

const long = "Read this: ".padEnd(20_000, "lorem ipsum ");
const ask = (model: string, more: object = {}) => ({
  model,
  max_tokens: 500,
  messages: [{ role: "user", content: long }],
  ...more,
});

test("the first stream after a start begins with an estimate, while the vocabulary is still loading", async () => {
  await using proxy = await startProxy({ tokenizer: openTokenizer() });
  const response = await proxy.post("/v1/messages", ask("gpt-5.3-codex", { stream: true }));
  const [start] = eventsIn(await response.text());
  expect(start.message.usage.input_tokens).toBeGreaterThan(4000);
  expect(start.message.usage.input_tokens).toBeLessThan(8000);
});

test("a stream of a Messages upstream that is changed here begins with the upstream's own numbers", async () => {
  await using proxy = await startProxy();
  const tools = [{ type: "web_search_20250305", name: "web_search" }];
  const response = await proxy.post("/v1/messages", ask("claude-sonnet-4.6", { stream: true, tools }));
  const events = eventsIn(await response.text());
  // At its beginning the demo reports half of what an estimate by length would be.
  expect(events[0].message.usage.input_tokens).toBeWithin(1000, 3000);
});

describe.each([true, false])("a reply without usage, streamed: %p", (stream) => {
  test("tells a Messages client estimates, which the row marks", async () => {
    await using proxy = await startProxy();
    offerOnly(proxy.demo, { "gpt-5-mini": ["/chat/completions"] });
    const words = "A red panda is a small mammal of the Himalayas.";
    const base = { id: "c1", created: 1, model: "m" };
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    const message = { role: "assistant", content: words };
    proxy.demo.intercept("/chat/completions", () =>
      stream
        ? eventStream(`${chunk(message, null)}${chunk({}, "stop")}data: [DONE]\n\n`)
        : Response.json({
            ...base,
            object: "chat.completion",
            choices: [{ index: 0, message, finish_reason: "stop" }],
          }),
    );
    const text = await (await proxy.post("/v1/messages", ask("gpt-5-mini", { stream }))).text();
    const usage = stream ? eventsIn(text).find(({ type }) => type === "message_delta").usage : JSON.parse(text).usage;
    expect(usage.output_tokens).toBe(Math.ceil(words.length / 4));
    expect(usage.input_tokens).toBeWithin(3000, 8000);
    expect(proxy.rows()[0]).toMatchObject({
      output_tokens: usage.output_tokens,
      input_tokens: usage.input_tokens,
      tokens_estimated: 1,
    });
  });
});
