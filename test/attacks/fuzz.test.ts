/** Decoders meet anything: never a crash, never a stream that looks complete when it is not. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { codecs } from "../../src/dialects/codecs";
import { dialects } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { ProxyError } from "../../src/errors";
import { gatherFrames, readSse } from "../../src/net/sse";
import { pipe, run } from "../../src/net/stream";
import { type RunningProxy, startProxy } from "../support/proxy";

const runs = { numRuns: 300, seed: 20_261_121 };
const encode = (text: string) => new TextEncoder().encode(text);
const asked = { model: "m", replies: 1, usage: true } as never;

/** Bytes that look like an event stream often enough to be dangerous. */
const line = fc.oneof(
  fc.constantFrom(
    "data: [DONE]",
    "data:",
    "data: {}",
    "data: null",
    "data: []",
    "event: error",
    ": x",
    "",
    "\r",
    "id: 1",
    "retry: 1",
    'data: {"type":"message_stop"}',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1}]}}]}',
    'data: {"type":"response.completed"}',
    'data: {"error":null}',
    'data: {"type":"content_block_delta","index":1e9,"delta":{}}',
  ),
  fc.json().map((json) => `data: ${json}`),
  fc.string().map((text) => `data: ${text}`),
  fc.string(),
);
const stream = fc.oneof(
  fc.array(line, { maxLength: 12 }).map((lines) => encode(`${lines.join("\n\n")}\n\n`)),
  fc.array(line, { maxLength: 12 }).map((lines) => encode(lines.join("\r\n"))),
  fc.uint8Array({ maxLength: 400 }),
);

function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size));
}

/** Members a decoder will look at, holding what it does not expect. */
const words = fc.constantFrom(
  "model",
  "messages",
  "input",
  "content",
  "role",
  "type",
  "text",
  "tools",
  "tool_calls",
  "function",
  "name",
  "arguments",
  "id",
  "index",
  "choices",
  "delta",
  "message",
  "usage",
  "output",
  "item",
  "error",
  "stop_reason",
  "finish_reason",
  "system",
  "tool_choice",
  "thinking",
  "source",
  "max_tokens",
  "input_schema",
  "tool_use_id",
  "call_id",
  "__proto__",
  "constructor",
);
const values = fc.constantFrom<unknown>(
  "user",
  "assistant",
  "tool",
  "system",
  "text",
  "tool_use",
  "tool_result",
  "thinking",
  "image",
  "function_call",
  "function_call_output",
  "reasoning",
  "message",
  "function",
  "message_start",
  "content_block_start",
  "content_block_delta",
  "response.created",
  "response.output_item.added",
  "auto",
  0,
  -1,
  1e308,
  null,
  true,
  "",
  "\ud800",
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    values,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(words, tie("tree"), { maxKeys: 6 }),
  ),
}));
const object = fc.dictionary(words, tree, { maxKeys: 8 });

/** One end at most, nothing behind it, and an error unless it is a finish. */
function expectOneEnd(events: ReplyEvent[]): void {
  const ends = events.filter(({ type }) => type === "finish" || type === "error");
  expect(ends.length).toBeLessThanOrEqual(1);
  expect(ends.length === 0 || events.at(-1) === ends[0]).toBe(true);
}

describe("event streams", () => {
  test("raw bytes, cut anywhere, are the same frames or a clean refusal", () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 17 }), (bytes, size) => {
        const data = (chunks: Uint8Array[]) =>
          run(readSse, chunks).flatMap((frame) => (frame.data === undefined ? [] : [frame.data]));
        expect(data(cut(bytes, size))).toEqual(data([bytes]));
      }),
      runs,
    );
  });
});

describe.each([...dialects])("%s", (dialect) => {
  const codec = codecs[dialect];

  test("a stream of anything ends once, with an error unless it was whole", () => {
    fc.assert(
      fc.property(stream, (bytes) => expectOneEnd(run(pipe(readSse, codec.decodeStream()), [bytes]))),
      runs,
    );
  });

  test("a stream of likely events ends once", () => {
    fc.assert(
      fc.property(fc.array(object, { maxLength: 6 }), (events) => {
        const bytes = encode(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
        expectOneEnd(run(pipe(readSse, codec.decodeStream()), [bytes]));
      }),
      runs,
    );
  });

  test("passed through, a stream of anything is never a crash", () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        const out = gatherFrames();
        const client = codec.mendStream(asked, () => {})(out);
        for (const frame of run(readSse, [bytes])) client.push(frame);
        client.end();
        out.take();
      }),
      runs,
    );
  });

  test("passed through, a stream of likely events is never a crash", () => {
    fc.assert(
      fc.property(fc.array(object, { maxLength: 6 }), (events) => {
        const out = gatherFrames();
        const client = codec.mendStream(asked, () => {})(out);
        for (const frame of run(readSse, [
          encode(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")),
        ]))
          client.push(frame);
        client.end();
        out.take();
      }),
      runs,
    );
  });

  test("a full reply of anything is read, mended, or refused in words", () => {
    fc.assert(
      fc.property(object, (body) => {
        const safe = JSON.parse(JSON.stringify(body));
        const read = only(() => codec.decodeReply(safe));
        if (read) expectOneEnd(read);
        only(() => codec.mendReply(JSON.parse(JSON.stringify(body)), asked));
      }),
      runs,
    );
  });

  test("a request of anything is read, or refused in words", () => {
    fc.assert(
      fc.property(object, (body) => {
        const safe = JSON.parse(JSON.stringify({ ...body, model: "m" }));
        only(() => codec.decodeRequest(safe));
      }),
      runs,
    );
    expect(({} as Record<string, unknown>).model).toBeUndefined();
  });
});

describe("through the proxy, into each other dialect", () => {
  const routes = [
    ["/v1/chat/completions", "claude-sonnet-4.6", "/v1/messages"],
    ["/v1/messages", "gpt-5.3-codex", "/responses"],
    ["/v1/responses", "claude-sonnet-4.6", "/v1/messages"],
    ["/v1/messages", "gemini-3.1-pro-preview", "/chat/completions"],
    ["/v1/responses", "gpt-5.3-codex", "/responses"],
  ] as const;
  let proxy: RunningProxy;
  beforeAll(async () => {
    proxy = await startProxy();
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  test.each(routes)("%s to %s: a request of anything is served or refused, never 500", async (path, model) => {
    for (const body of fc.sample(object, { numRuns: 120, seed: 20_261_121 })) {
      const response = await proxy.post(path, { ...body, model, stream: false });
      const text = await response.text();
      expect([response.status < 500 || response.status === 502, text.slice(0, 200), body]).toEqual([
        true,
        expect.anything(),
        body,
      ]);
    }
  });

  test.each(routes)(
    "%s to %s: an answer of anything ends, in an error unless it was whole",
    async (path, model, endpoint) => {
      const input = [{ role: "user", content: "Hello" }];
      for (const bytes of fc.sample(stream, { numRuns: 60, seed: 20_261_121 })) {
        proxy.demo.intercept(
          endpoint,
          () => new Response(Buffer.from(bytes), { headers: { "content-type": "text/event-stream" } }),
        );
        const response = await proxy.post(path, {
          model,
          stream: true,
          max_tokens: 50,
          ...(path === "/v1/responses" ? { input, max_tokens: undefined } : { messages: input }),
        });
        const text = await response.text();
        expect([200, 502, 400]).toContain(response.status);
        expect(text).not.toBe("");
      }
    },
  );
});

/** The result, or nothing where it was refused in words; anything else thrown is a crash. */
function only<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof ProxyError && thrown.kind !== "internal") return undefined;
    throw thrown;
  }
}
