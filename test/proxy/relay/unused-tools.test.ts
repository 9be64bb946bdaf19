/** Rows: a tool that runs here and is not used changes no byte of a reply in the upstream's own dialect. */
import { describe, expect, test } from "bun:test";
import { eventStream, eventsIn } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";

const messages = [{ role: "user", content: "Hello" }];
const search = { type: "web_search_20250305", name: "web_search" };
const lookup = { name: "lookup", input_schema: { type: "object" } };
const event = (data: Json) => `event: ${data.type}\ndata: ${JSON.stringify(data).replace(":", " : ")}\n\n`;
const usage = {
  ...{ input_tokens: 9, output_tokens: 1, service_tier: "standard" },
  cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 2 },
};
const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4.6", container: null, usage };
const ending = { stop_reason: "end_turn", stop_sequence: null, stop_details: { category: "x" } };
const cleared = { applied_edits: [{ type: "clear_tool_uses_20250919", cleared_tool_uses: 3 }] };

const json = (text: string) => new Response(text, { headers: { "content-type": "application/json" } });
const chunk = (more: Json) =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 5, model: "gemini-3.1-pro-preview", system_fingerprint: "fp_1", ...more })}\n\n`;
const logprobs = { content: [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] }], refusal: null };

/** A request with and without the tool, and what the upstream answers to both: full, and as a stream. */
const cases = {
  Messages: {
    path: "/v1/messages",
    endpoint: "/v1/messages",
    plain: { model: "claude-sonnet-4.6", max_tokens: 99, messages, tools: [lookup] },
    offered: { tools: [lookup, search] },
    full: JSON.stringify(
      { ...message, content: [{ type: "text", text: "Hi\u00a0" }], ...ending, context_management: cleared, zzz: 1.5 },
      null,
      1,
    ).replace("1.5", "1.50"),
    stream: [
      event({ type: "message_start", message: { ...message, content: [] } }),
      event({ type: "ping" }),
      event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } }),
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: " there" } }),
      event({ type: "content_block_stop", index: 0 }),
      event({ type: "message_delta", delta: ending, usage: { ...usage, zzz: 1 }, context_management: cleared }),
      event({ type: "message_stop" }),
    ].join(""),
  },
  chat: {
    path: "/v1/chat/completions",
    endpoint: "/chat/completions",
    plain: { model: "gemini-3.1-pro-preview", messages, logprobs: true },
    offered: { web_search_options: {} },
    full: JSON.stringify(
      {
        ...{
          id: "c1",
          object: "chat.completion",
          created: 5,
          model: "gemini-3.1-pro-preview",
          system_fingerprint: "fp_1",
        },
        choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, logprobs, finish_reason: "stop" }],
        usage: {
          ...{ prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
          completion_tokens_details: { accepted_prediction_tokens: 4, rejected_prediction_tokens: 1 },
        },
      },
      null,
      1,
    ),
    stream: [
      chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, logprobs, finish_reason: null }] }),
      chunk({ choices: [{ index: 0, delta: { content: " there" }, logprobs, finish_reason: null }] }),
      chunk({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] }),
      "data: [DONE]\n\n",
    ].join(""),
  },
};

describe.each(Object.entries(cases))("a %s client", (_name, { path, endpoint, plain, offered, full, stream }) => {
  test.each([false, true])(
    "a client whose tool is not used gets the same bytes as without it (stream: %p)",
    async (isStream) => {
      await using proxy = await startProxy();
      const texts: string[] = [];
      for (const more of [{}, offered]) {
        proxy.demo.intercept(endpoint, () => (isStream ? eventStream(stream) : json(full)));
        const response = await proxy.post(path, { ...plain, ...more, stream: isStream });
        expect(response.status).toBe(200);
        texts.push(await response.text());
      }
      expect(texts[1]).toBe(texts[0]!);
      expect(texts[0]).toContain(isStream ? " there" : "Hi");
      const [row] = proxy.rows();
      expect([row!.dropped, row!.output_tokens, row!.stop_reason === null]).toEqual([
        "[]",
        isStream && path.includes("chat") ? null : 1,
        false,
      ]);
    },
  );

  test("a client whose tool is not used gets the words of an error of the upstream's stream", async () => {
    await using proxy = await startProxy();
    const failed = path.includes("chat")
      ? 'data: {"error":{"message":"Bearer abcdefghijklmnop","code":"x"}}\n\n'
      : event({ type: "error", error: { type: "api_error", message: "Bearer abcdefghijklmnop" } });
    const begun = stream.slice(0, stream.indexOf("\n\n", stream.indexOf("Hi")) + 2);
    proxy.demo.intercept(endpoint, () => eventStream(begun + failed));
    const text = await (await proxy.post(path, { ...plain, ...offered, stream: true })).text();
    expect(text).toContain("Bearer abcdefghijklmnop");
  });
});

test.each([
  ["after it has said something", 0],
  ["after an empty text", 1],
])("a stream goes on in one piece when the model uses the tool %s", async (_when, empty) => {
  await using proxy = await startProxy();
  let turn = 0;
  const call = { type: "tool_use", id: "toolu_1", name: "web_search", input: {} };
  const said = cases.Messages.stream.split(/(?<=\n\n)/).slice(0, 6);
  const first = [
    ...said.filter((text) => !empty || !text.includes("delta")),
    event({ type: "content_block_start", index: 1, content_block: call }),
    event({
      type: "content_block_delta",
      index: 1,
      delta: { type: "input_json_delta", partial_json: '{"query":"pandas"}' },
    }),
    event({ type: "content_block_stop", index: 1 }),
    event({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } }),
    event({ type: "message_stop" }),
  ].join("");
  proxy.demo.intercept("/v1/messages", () => (++turn === 1 ? eventStream(first) : undefined), 2);
  const body = { ...cases.Messages.plain, ...cases.Messages.offered, stream: true };
  const text = await (await proxy.post("/v1/messages", body)).text();
  const events: Json[] = eventsIn(text);
  const begun = events.filter(({ type }) => type === "content_block_start");
  expect(begun.map(({ index, content_block }) => [index, content_block.type])).toEqual([
    [0, "text"],
    [1, "server_tool_use"],
    [2, "web_search_tool_result"],
    [3, "text"],
  ]);
  const stopped = events.filter(({ type }) => type === "content_block_stop").map(({ index }) => index);
  expect(stopped).toEqual([0, 1, 2, 3]);
  for (const type of ["message_start", "message_delta", "message_stop"])
    expect([type, events.filter((each) => each.type === type).length]).toEqual([type, 1]);
});

test("what is changed in an answer that is written anew is no change of a reply that is passed on", async () => {
  await using proxy = await startProxy();
  let turn = 0;
  const call = { type: "tool_use", id: "toolu_1", name: "web_search", input: {} };
  const first = [
    ...cases.Messages.stream.split(/(?<=\n\n)/).slice(0, 1),
    event({ type: "content_block_start", index: 0, content_block: call }),
    event({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: '{"query":"pandas"}' },
    }),
    event({ type: "content_block_stop", index: 0 }),
    event({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } }),
    event({ type: "message_stop" }),
  ].join("");
  const then = event({ type: "unheard_of" }) + cases.Messages.stream;
  proxy.demo.intercept("/v1/messages", () => eventStream(++turn === 1 ? first : then), 2);
  const body = { ...cases.Messages.plain, ...cases.Messages.offered, stream: true };
  expect(await (await proxy.post("/v1/messages", body)).text()).toContain(" there");
  const row = proxy.rows().find(({ path }) => path === "/v1/messages");
  expect(JSON.parse(row!.fixups)).not.toContain("foreign-event");
});
