/** Scenario: streams passed through: bytes, cuts, silence, hang-ups. The upstream's bytes are written by hand here. */

import { expect, test } from "bun:test";
import { startCut } from "../../support/cut";
import { chunkSizes } from "../../support/differential";
import { eventStream } from "../../support/event-stream";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { until } from "../../support/until";

const model = "gpt-5-mini";
const chunk = (choices: object[], more = {}) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1785000000, model, choices, ...more })}\n\n`;
const delta = (content: string, role?: string) => chunk([{ index: 0, delta: { role, content }, finish_reason: null }]);
const usage = {
  prompt_tokens: 15,
  completion_tokens: 7,
  total_tokens: 22,
  prompt_tokens_details: { cached_tokens: 3 },
};

/** A stream that needs no mend: every field is there, the model is the one asked for, and usage was asked for. */
const sound = [
  chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
  delta("Grüße, 世界! 🎈"),
  delta(" Bye."),
  chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
  chunk([], { usage }),
  "data: [DONE]\n\n",
].join("");

const ask = {
  model,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content: "Hello" }],
};
const bytes = (text: string) => new TextEncoder().encode(text);

/** An answer whose bytes come in pieces of this size. */
function inPieces(all: Uint8Array, size: number): Response {
  let at = 0;
  return eventStream(
    new ReadableStream({
      async pull(controller) {
        if (at >= all.length) return controller.close();
        controller.enqueue(all.subarray(at, at + size));
        at += size;
        if (at % 7 === 0) await Bun.sleep(0);
      },
    }),
  );
}

async function reply(proxy: RunningProxy, answer: () => Response): Promise<string> {
  proxy.demo.intercept("/chat/completions", answer);
  return (await proxy.post("/v1/chat/completions", ask)).text();
}

test("the bytes of a stream that needs no mend arrive as they were, in pieces of any size", async () => {
  await using proxy = await startProxy();
  for (const text of [sound, sound.replaceAll("\n", "\r\n")])
    for (const size of chunkSizes) expect(await reply(proxy, () => inPieces(bytes(text), size))).toBe(text);
  const counts = { input_tokens: 15, cached_tokens: 3, output_tokens: 7 };
  for (const row of proxy.rows()) expect(row).toMatchObject({ fixups: "[]", ...counts, stop_reason: "stop" });
});

test("the bytes of the request go up as the client wrote them, large numbers and unknown fields included", async () => {
  await using proxy = await startProxy();
  const text = `{ "model" : "${model}", "seed": 9007199254740993, "x_new": {"a": 1.0e2}, "stream":true,"stream_options":{"include_usage":true}, "messages":[{"role":"user","content":"\\ud83d\\ude00"}] }`;
  await (await proxy.post("/v1/chat/completions", text)).text();
  expect(Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString()).toBe(text);
});

test("bytes are forwarded before the next ones exist", async () => {
  await using proxy = await startProxy();
  let upstream!: ReadableStreamDefaultController<Uint8Array>;
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      upstream = controller;
      controller.enqueue(bytes(delta("first", "assistant")));
    },
  });
  proxy.demo.intercept("/chat/completions", () => eventStream(source));
  const response = await proxy.post("/v1/chat/completions", ask);
  const reader = response.body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe(delta("first", "assistant"));
  upstream.enqueue(bytes(delta("second")));
  expect(Buffer.from((await reader.read()).value!).toString()).toBe(delta("second"));
  upstream.enqueue(bytes(`${chunk([{ index: 0, delta: {}, finish_reason: "stop" }])}data: [DONE]\n\n`));
  upstream.close();
  while (!(await reader.read()).done);
});

test("a stream that breaks at any byte ends in a truthful error, never as if it were complete", async () => {
  await using proxy = await startProxy();
  const all = bytes(sound);
  const finish = sound.indexOf('"finish_reason":"stop"');
  const finished = bytes(sound.slice(0, sound.indexOf("\n\n", finish))).length;
  for (const length of drawn("lengths", [...all.keys()], 6)) {
    proxy.demo.intercept("/chat/completions", () => inPieces(all.subarray(0, length), 64));
    const response = await proxy.post("/v1/chat/completions", ask);
    const text = await response.text();
    const known = Buffer.from(all.subarray(0, length)).toString();
    if (response.status !== 200) {
      expect(response.status).toBe(502);
      expect(known).not.toContain('世界! 🎈"},"finish_reason":null}]}\n\n');
      continue;
    }
    // Once the finish reason was seen whole, the reply is complete without its last marker.
    const complete = length >= finished;
    expect(text.includes('"error"')).toBe(!complete);
    if (!complete) expect(text).not.toContain("[DONE]");
  }
});

test.each([
  ["the same dialect", "/v1/messages", { max_tokens: 30_000, messages: ask.messages }],
  ["another dialect", "/v1/responses", { max_output_tokens: 30_000, input: "Hello" }],
] as const)(
  "a full reply gathered from a stream of %s is there with its last event, though the connection stays open",
  async (_, path, given) => {
    await using proxy = await startProxy();
    startCut(proxy.demo, "/v1/messages", Number.POSITIVE_INFINITY);
    const response = await proxy.post(path, { model: "claude-sonnet-4.6", ...given });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("output_tokens")]);
    await until(() => proxy.demo.open === 0, "the upstream's connection is closed");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, error_type: null, stop_reason: expect.any(String) });
  },
);

test.each<[string, string, object, (response: Promise<Response>) => unknown]>([
  ["before the headers", "[demo: slow-headers 20]", {}, () => {}],
  [
    "in the middle of the stream",
    "[demo: long 5000]",
    {},
    async (response) => (await response).body!.getReader().read(),
  ],
  ["in silence", "[demo: silence 20]", {}, async (response) => (await response).body!.getReader().read()],
  ["in a full answer", "[demo: slow-headers 20]", { stream: false, stream_options: undefined }, () => {}],
])("the client's hang-up %s closes the upstream", async (_, directive, more, after) => {
  await using proxy = await startProxy({ demo: { pace: 10 } });
  const controller = new AbortController();
  const body = { ...ask, ...more, messages: [{ role: "user", content: `${directive} Hello` }] };
  const response = proxy.post("/v1/chat/completions", body, { signal: controller.signal });
  response.catch(() => {});
  await until(() => proxy.demo.open === 1, "the upstream is asked");
  await after(response);
  controller.abort();
  await until(() => proxy.demo.open === 0, "the upstream's connection is closed");
  await until(() => proxy.rows().length === 1, "the row is written");
  expect(proxy.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
});

test.concurrent("silence beyond the limit ends in a timeout, before and after the first byte", async () => {
  await using proxy = await startProxy({ env: { DRAGOMAN_UPSTREAM_TIMEOUT_MS: "300" } });
  const say = (directive: string) =>
    proxy.post("/v1/chat/completions", { ...ask, messages: [{ role: "user", content: `${directive} Hello` }] });
  // The token has the same limit.
  await until(async () => (await say("")).ok, "the account has its token");
  expect((await say("[demo: slow-headers 20]")).status).toBe(504);
  expect(await (await say("[demo: silence 20]")).text()).toMatch(/"error":.*sent nothing for 0.3 s/);
  await until(() => proxy.demo.open === 0, "the upstream's connection is closed");
});

test("an answer that is missing its end, one of several at once, makes the stream a broken one", async () => {
  await using proxy = await startProxy();
  const ended = (index: number) => chunk([{ index, delta: { content: "Hi" }, finish_reason: "stop" }]);
  const two = async (frames: string) => {
    proxy.demo.intercept("/chat/completions", () => inPieces(bytes(frames), 500));
    return (await proxy.post("/v1/chat/completions", { ...ask, n: 2 })).text();
  };
  expect(await two(ended(0))).toContain('"error"');
  expect(await two(ended(0) + ended(1))).toEndWith("data: [DONE]\n\n");
});
