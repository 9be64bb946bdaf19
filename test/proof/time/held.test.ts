/**
 * Rows: a promise in time: 1 MB that a client or an upstream sends holds the thread that serves everybody for less than
 * 50 ms. The texts are those that patterns stumble over, at each place of requests and answers, through real HTTP. What
 * is measured is the work of the thread between two turns of its loop, so that other processes do not count. Client and
 * upstream run on the same thread: their work counts, too.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventStream, namedEvent } from "../../support/event-stream";
import { hostileTexts, longestHeld, mostHeldMs } from "../../support/held";
import { type RunningProxy, startProxy } from "../../support/proxy";

// biome-ignore lint/suspicious/noExplicitAny: requests in four dialects
type Json = any;

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts);

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy({ config: { logLevel: "debug" } });
});
afterAll(() => proxy[Symbol.asyncDispose]());

const schema = { type: "object", properties: { a: { type: "string" } } };
const user = (content: unknown) => ({ role: "user", content });
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Places of a request of each dialect. */
const places: Record<string, (text: string) => { path: string; body: Json; headers?: Record<string, string> }> = {};
for (const model of ["claude-sonnet-4.6", "gpt-5-mini"]) {
  const add = (place: string, more: (text: string) => Json) => {
    places[`Messages on ${model}: ${place}`] = (text) => ({
      path: "/v1/messages",
      body: { model, max_tokens: 9, messages: [user("Hello")], ...more(text) },
    });
  };
  add("the system prompt", (text) => ({ system: text }));
  add("a message", (text) => ({ messages: [user(text)] }));
  add("a reminder in a message", (text) => ({ messages: [user(`<system-reminder>${text}</system-reminder>${text}`)] }));
  add("a tool's description", (text) => ({ tools: [{ name: "f", description: text, input_schema: schema }] }));
  add("a pattern in a tool's schema", (text) => ({
    tools: [{ name: "f", input_schema: { ...schema, properties: { a: { type: "string", pattern: text } } } }],
  }));
  add("the input and the result of a tool", (text) => ({
    messages: [
      user("Hello"),
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: { a: text } }] },
      user([{ type: "tool_result", tool_use_id: "toolu_1", content: text }]),
    ],
  }));
  add("the id of a call", (text) => ({
    messages: [
      user("Hello"),
      { role: "assistant", content: [{ type: "tool_use", id: text, name: "f", input: {} }] },
      user([{ type: "tool_result", tool_use_id: text, content: "ok" }]),
    ],
  }));
  add("a signature", (text) => ({
    messages: [
      user("Hello"),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: text },
          { type: "text", text: "A" },
        ],
      },
      user("Go on."),
    ],
  }));
  add("the data of an image", (text) => ({
    messages: [user([{ type: "image", source: { type: "base64", media_type: "image/png", data: pixel + text } }])],
  }));
  add("the user's id", (text) => ({ metadata: { user_id: text } }));
  add("a field that nobody knows", (text) => ({ zzz: text }));
}
const chat = (place: string, more: (text: string) => Json) => {
  places[`Chat: ${place}`] = (text) => ({
    path: "/v1/chat/completions",
    body: { model: "gpt-5-mini", messages: [user("Hello")], ...more(text) },
  });
};
chat("a message", (text) => ({ messages: [user(text)] }));
chat("a part of a message", (text) => ({ messages: [user([{ type: "text", text }])] }));
chat("the address of an image", (text) => ({ messages: [user([{ type: "image_url", image_url: { url: text } }])] }));
chat("the arguments of a call", (text) => ({
  messages: [
    user("Hello"),
    {
      role: "assistant",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: text } }],
    },
    { role: "tool", tool_call_id: "call_1", content: text },
  ],
}));
chat("the user, the cache key and the stop sequences", (text) => ({
  user: text,
  prompt_cache_key: text,
  stop: [text],
}));
chat("the name of a tool", (text) => ({ tools: [{ type: "function", function: { name: text, parameters: schema } }] }));
places["Responses: the input"] = (text) => ({ path: "/v1/responses", body: { model: "gpt-5.2", input: text } });
places["Responses: the instructions, translated"] = (text) => ({
  path: "/v1/responses",
  body: { model: "claude-sonnet-4.6", instructions: text, input: [user(text)] },
});
places["Gemini: the contents"] = (text) => ({
  path: "/v1beta/models/gpt-5-mini:generateContent",
  body: { contents: [{ role: "user", parts: [{ text }] }] },
});
places.embeddings = (text) => ({ path: "/v1/embeddings", body: { model: "text-embedding-3-small", input: text } });
places["a count of tokens"] = (text) => ({
  path: "/v1/messages/count_tokens",
  body: { model: "claude-sonnet-4.6", messages: [user(text)] },
});
places["a model's name"] = (text) => ({
  path: "/v1/chat/completions",
  body: { model: text, messages: [user("Hello")] },
});
places["the headers"] = (text) => {
  const value = text.slice(0, 3_000).replace(/[^ -~]/g, "x");
  return {
    path: "/v1/chat/completions",
    body: { model: "gpt-5-mini", messages: [user("Hello")] },
    headers: { "user-agent": value, "x-session-id": value, "anthropic-beta": value, traceparent: value },
  };
};

const refusal = (error: Json) => Response.json({ type: "error", error }, { status: 400 });
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  usage: { input_tokens: 9, output_tokens: 1 },
};
const begun = namedEvent({ type: "message_start", message: { ...message, content: [] } });
const block = (content: Json, delta: Json) =>
  namedEvent({ type: "content_block_start", index: 0, content_block: content }) +
  namedEvent({ type: "content_block_delta", index: 0, delta }) +
  namedEvent({ type: "content_block_stop", index: 0 });
const ended =
  namedEvent({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } }) +
  namedEvent({ type: "message_stop" });

/** What an upstream may answer. */
const answers: Record<string, (text: string) => Response> = {
  "an error's message": (text) => refusal({ type: "invalid_request_error", message: text }),
  "an error's code and parameter": (text) => refusal({ type: text, code: text, param: text, message: "No." }),
  "an error that is no JSON": (text) => new Response(text, { status: 400 }),
  "the text of a reply": (text) =>
    Response.json({ ...message, content: [{ type: "text", text }], stop_reason: "end_turn" }),
  "the input of a call": (text) =>
    Response.json({
      ...message,
      content: [{ type: "tool_use", id: "toolu_1", name: "f", input: { a: text } }],
      stop_reason: "tool_use",
    }),
  "an answer that is no JSON": (text) => new Response(text, { headers: { "content-type": "application/json" } }),
  "the text of a stream": (text) =>
    eventStream(begun + block({ type: "text", text: "" }, { type: "text_delta", text }) + ended),
  "the input of a call in a stream": (text) =>
    eventStream(
      begun +
        block(
          { type: "tool_use", id: "toolu_1", name: "f", input: {} },
          { type: "input_json_delta", partial_json: text },
        ) +
        ended,
    ),
  "a signature in a stream": (text) =>
    eventStream(
      begun + block({ type: "thinking", thinking: "" }, { type: "signature_delta", signature: text }) + ended,
    ),
  "an error in a stream": (text) =>
    eventStream(begun + namedEvent({ type: "error", error: { type: text, message: text } })),
  "a stream that is none": (text) => eventStream(text),
};

describe.each(
  Object.entries(answers).flatMap(([name, answer]) =>
    (["/v1/messages", "/v1/chat/completions"] as const).map((path) => [name, path, answer] as const),
  ),
)("%s of an upstream at %s", (_name, path, answer) => {
  const model = "claude-sonnet-4.6";
  const body = { model, max_tokens: 9, messages: [user("Hello")], tools: [] };

  test("an answer of 1 MB holds the thread for less than 50 ms, whatever it is", async () => {
    const ask = async (written: (length: number) => string) => {
      const { length } = await answer(written(1_000)).text();
      const stream = (answer("").headers.get("content-type") ?? "").includes("event-stream");
      const text = written(mebibyte / Math.max(1, length / 1_500));
      const endpoint = path === "/v1/messages" ? "/v1/messages" : /./;
      let given = 0;
      proxy.demo.intercept(endpoint, () => {
        given++;
        return answer(text);
      });
      const held = await longestHeld(async () => void (await (await proxy.post(path, { ...body, stream })).text()));
      expect(given).toBe(1);
      return held;
    };
    expect(await heldBy(ask)).toEqual([]);
  });
});

/**
 * The texts with which something held the thread for too long, and the least of five such times: what the least says is the
 * work itself, and not a collection of garbage. Where plain letters of the same length take much themselves, as beside
 * neighbours that use up the memory's bandwidth, a text may take twice that.
 */
async function heldBy(ask: (written: (length: number) => string) => Promise<number>): Promise<[string, number][]> {
  await ask(() => "Hello");
  const leastOf = async (text: (length: number) => string, most: number) => {
    let held = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < 5 && held >= most; turn++) held = Math.min(held, await ask(text));
    return held;
  };
  const most = Math.max(mostHeldMs, 2 * (await leastOf((length) => "a".repeat(length), mostHeldMs / 2)));
  const slow: [string, number][] = [];
  for (const [name, text] of texts) {
    const held = await leastOf(text, most);
    if (held >= most) slow.push([name, Math.round(held)]);
  }
  return slow;
}

describe.each(Object.entries(places))("%s", (_place, make) => {
  test("a request of 1 MB holds the thread for less than 50 ms, whatever it is", async () => {
    const ask = async (written: (length: number) => string) => {
      const { length } = JSON.stringify(make(written(1_000)).body);
      // 1 MB as it is sent: escaped, and perhaps at two places.
      const { path, body, headers } = make(written(mebibyte / Math.max(1, length / 1_100)));
      const json = JSON.stringify(body);
      return await longestHeld(async () => void (await (await proxy.post(path, json, { headers })).text()));
    };
    expect(await heldBy(ask)).toEqual([]);
  });
});
