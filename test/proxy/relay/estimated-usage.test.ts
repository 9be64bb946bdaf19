/** Scenario: numbers of tokens that a Messages client requires and an upstream does not report, or not in time. */
import { expect, test } from "bun:test";
import { openTokenizer } from "../../../src/proxy/tokens/tokenizer";
import { eventsIn } from "../../support/event-stream";
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
