/** Scenario: replies in the client's own dialect that cannot be followed: they are passed on, and their rows say so. */
import { expect, test } from "bun:test";
import { eventStream, namedEvent } from "../../support/event-stream";
import { startProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";

const model = "claude-sonnet-4.6";
const usage = { input_tokens: 9, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 1 };
const start = {
  type: "message_start",
  message: { id: "m", type: "message", role: "assistant", model, content: [], stop_reason: null, usage },
};
const begin = (index: number) => ({
  type: "content_block_start",
  index,
  content_block: { type: "text", text: "" },
});
const says = (index: number, text: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "text_delta", text },
});
const stop = (index: number) => ({ type: "content_block_stop", index });
const end = [
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];
const odd = [start, begin(0), says(0, "a"), stop(0), begin(1), says(0, "b"), stop(1), ...end];

test.each(["/v1/messages", "/own/v1/messages"])(
  "a stream in the client's own dialect that nobody here can follow reaches the client to the byte, and its row has the note, the usage and the end: %s",
  async (path) => {
    const apiKey = "pk-own-0123456789";
    await using provider = startProvider({ key: apiKey, auth: "x-api-key" });
    const own = { type: "anthropic", baseUrl: provider.url, apiKey };
    await using proxy = await startProxy({ config: { providers: { own } } });
    const text = odd.map(namedEvent).join("");
    proxy.demo.intercept("/v1/messages", () => eventStream(text));
    provider.next(() => eventStream(text));
    const answer = await proxy.post(path, {
      ...{ model, stream: true, max_tokens: 100 },
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(await answer.text()).toBe(text);
    expect(proxy.rows()[0]).toMatchObject({
      ...{ http_status: 200, error_type: null, stop_reason: "end_turn" },
      ...{ input_tokens: 9, output_tokens: 7, fixups: '["reply-unfollowed"]' },
    });
  },
);

test("a stream in the client's own dialect that nobody here can follow ends with an error where the upstream cuts it, or where it has to be translated", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept("/v1/messages", () => eventStream(odd.slice(0, -1).map(namedEvent).join("")));
  const cut = await proxy.post("/v1/messages", {
    ...{ model, stream: true, max_tokens: 100 },
    messages: [{ role: "user", content: "Hello" }],
  });
  expect(await cut.text()).toContain("event: error");
  expect(proxy.rows()[0]!.error_type).not.toBeNull();
  proxy.demo.intercept("/v1/messages", () => eventStream(odd.map(namedEvent).join("")));
  const translated = await proxy.post("/v1/responses", { model, stream: true, input: "Hello" });
  expect(await translated.text()).toContain("response.failed");
});

test("a stream in the client's own dialect that nobody here can follow is a full reply as well", async () => {
  await using proxy = await startProxy();
  const body = {
    ...{ id: "c", object: "chat.completion", created: 1, model: "gpt-5-mini" },
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "function", function: { arguments: "{}" } }],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 7, total_tokens: 16 },
  };
  proxy.demo.intercept("/chat/completions", () => Response.json(body));
  const answer = await proxy.post("/v1/chat/completions", {
    model: "gpt-5-mini",
    messages: [{ role: "user", content: "Hello" }],
  });
  expect([answer.status, await answer.json()]).toEqual([200, body]);
  expect(proxy.rows()[0]).toMatchObject({ output_tokens: 7, fixups: '["reply-unfollowed"]' });
});
