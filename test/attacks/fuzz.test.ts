/** Property: decoders meet anything: never a crash, never a stream that looks complete when it is not. */
import { afterAll, describe, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import {
  type ClientDialect,
  type Conversation,
  clientDialects,
  type Dialect,
  dialects,
} from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { collectInto, pipe, run } from "../../src/lib/net/stream/stream";
import { eventStream } from "../support/event-stream";
import { hostileStreams } from "../support/hostile-shapes";
import { startProxy } from "../support/proxy";
import fc, { triesOf } from "../support/random";
import { meaningOf } from "../support/reply-grammar";
import { almost, change, object, odd, shaped } from "../support/requests";
import { bytesAt, decodeFrames, passes, passesFull, reads, recorded, wire, written } from "../support/streams";
import { only } from "./assert-healthy";

const runs = { numRuns: triesOf(300) };
const encode = (text: string) => new TextEncoder().encode(text);

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

/** Events that a decoder will look at. */
const likelyStream = fc
  .array(object, { maxLength: 6 })
  .map((events) => encode(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")));

const framesIn = (bytes: Uint8Array) => new TextDecoder().decode(bytes).split(/(?<=\n\n)/);
const recordedStreams = (dialect: Dialect) =>
  recorded(dialect, "stream.txt").map(([folder, file]) => framesIn(bytesAt(folder, file)));

/** A stream of the dialect, recorded or of a hostile shape, in which frames are others, gone, twice, swapped, or cut in half. */
function almostStream(dialect: Dialect): fc.Arbitrary<Uint8Array> {
  const seeds = recordedStreams(dialect);
  const shapes = shaped(hostileStreams, dialect).map((frames) => framesIn(wire(frames)));
  const step = fc.record({
    how: fc.constantFrom("change", "drop", "twice", "swap", "cut"),
    at: fc.nat(),
    inside: fc.nat(),
    value: odd,
    gone: fc.boolean(),
  });
  const all = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...seeds) }, { weight: 1, arbitrary: shapes });
  return fc.tuple(all, fc.array(step, { minLength: 1, maxLength: 3 })).map(([seed, steps]) => {
    const frames = [...seed];
    for (const { how, at, inside, value, gone } of steps) {
      const place = at % frames.length;
      const frame = frames[place] ?? "";
      if (how === "drop") frames.splice(place, 1, "");
      else if (how === "twice") frames.splice(place, 0, frame);
      else if (how === "swap") frames.push(...frames.splice(place, 1));
      else if (how === "cut") frames[place] = frame.slice(0, inside % (frame.length + 1));
      else
        frames[place] = frame.replace(/^data: (\{.*)$/m, (_line, json: string) => {
          const event = parsed(json);
          if (event) change(event, inside, value, gone);
          return `data: ${event ? JSON.stringify(event) : json}`;
        });
    }
    return encode(frames.join(""));
  });
}

/** Any events of the dialect's recorded streams. */
const strewn = (dialect: Dialect) =>
  fc
    .array(fc.constantFrom(...new Set(recordedStreams(dialect).flat())), { maxLength: 12 })
    .map((all) => encode(all.join("")));

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const asked = { model: "m", replies: 1, usage: true } as never;

function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size));
}

/**
 * What clients go by: the name of the event, or the type in its data where the upstream sent no name and it is passed on. An
 * empty line of data before it (`SEED=1994254402`) is white space of its JSON.
 */
function typeOf({ event, data = "" }: SseFrame): string {
  return event ?? /^\s*\{"type": ?"([\w.]+)"/.exec(data)?.[1] ?? "";
}

/** A member that is null says that there is none (`SEED=1116242778`). */
const isError = (data: string) => /^\s*\{"error":\s*(?!\s|null)/.test(data);

/** The frames end in the dialect's last word or in its error, and in one of them only. */
function expectEndOf(dialect: ClientDialect, frames: SseFrame[]): void {
  const isEnd = {
    chat: ({ data = "" }: SseFrame) => data === "[DONE]" || isError(data),
    responses: (frame: SseFrame) => /^(?:response\.(?:completed|incomplete|failed)|error)$/.test(typeOf(frame)),
    messages: (frame: SseFrame) => /^(?:message_stop|error)$/.test(typeOf(frame)),
    gemini: ({ data = "" }: SseFrame) => data.includes('"finishReason":') || isError(data),
  }[dialect];
  expect(frames.filter(isEnd)).toHaveLength(1);
  expect(isEnd(frames.at(-1)!)).toBe(true);
}

const isEvent = ({ data }: SseFrame) => data !== undefined;

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

describe.each([...dialects])("%s", (dialect) => {
  const codec = codecs[dialect];

  const streams: [name: string, bytes: fc.Arbitrary<Uint8Array>][] = [
    ["of anything", stream],
    ["of likely events", likelyStream],
    ["that was recorded, with something wrong in it,", almostStream(dialect)],
    ["of recorded events in any order", strewn(dialect)],
  ];

  test.each(streams)("a stream %s ends once, and in one way in each client's dialect", (_, streams) => {
    fc.assert(
      fc.property(streams, (bytes) => {
        meaningOf(run(pipe(readSse, reads(codec)), [bytes]));
        for (const client of clientDialects) {
          const extras = { google: { alt: "sse" } };
          const asked = { model: "m", turns: [], tools: [], stream: true, extras } as unknown as Conversation;
          const out: SseFrame[] = [];
          const sink = reads(codec)(codecs[client].encodeStream(asked)(collectInto(out)));
          const reader = readSse(sink);
          reader.push(bytes);
          reader.end();
          expectEndOf(client, out);
        }
      }),
      runs,
    );
  });

  test.each(streams)("passed through, a stream %s ends for the client as for the books", (_, streams) => {
    fc.assert(
      fc.property(streams, (bytes) => {
        const frames = run(readSse, [bytes]);
        const fixups = new Set<string>();
        const books: ReplyEvent[] = [];
        const read = { push: (event: ReplyEvent) => void books.push(event), end() {} };
        const passed = written(
          passes(codec, asked, (name) => void fixups.add(name), read),
          frames,
        );
        const ends = [meaningOf(decodeFrames(codec, passed)), meaningOf(books)].map(({ end }) => end.type);
        // What the reader cannot follow goes on as it comes.
        if (!fixups.has("reply-unfollowed")) expect(ends[0]).toBe(ends[1]!);
      }),
      runs,
    );
  });

  test("a recorded reply with something wrong in it is read into each dialect, mended, or refused in words", () => {
    fc.assert(
      fc.property(almost(dialect, "reply"), (body) => {
        const events = codec.decodeReply(JSON.parse(JSON.stringify(body)));
        meaningOf(events);
        const conversation = { model: "m", turns: [], tools: [], stream: false } as unknown as Conversation;
        if (events.at(-1)?.type === "finish")
          for (const client of clientDialects) JSON.stringify(codecs[client].encodeReply(events, conversation));
        JSON.stringify(passesFull(codec, JSON.parse(JSON.stringify(body)), asked, () => {}));
      }),
      runs,
    );
  });

  test("a full reply of anything is read, mended, or refused in words", () => {
    fc.assert(
      fc.property(object, (body) => {
        const safe = JSON.parse(JSON.stringify(body));
        const read = only(() => codec.decodeReply(safe));
        if (read) meaningOf(read);
        only(() => passesFull(codec, JSON.parse(JSON.stringify(body)), asked, () => {}));
      }),
      runs,
    );
  });
});

test("ids that hold quotes and backslashes stay what they are", () => {
  const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  for (const id of ['a"b', "a\\", 'a\\"', "\\", '"', "ü\n"]) {
    const stream = [
      event("response.created", { sequence_number: 0, response: { id: "r", output: [] } }),
      event("response.output_text.delta", { sequence_number: 1, output_index: 0, item_id: id, delta: "x" }),
      event("response.output_text.delta", { sequence_number: 2, output_index: 0, item_id: `other ${id}`, delta: "y" }),
      event("response.output_item.done", {
        sequence_number: 3,
        output_index: 0,
        item: { id: "third", type: "message" },
      }),
      event("response.completed", { sequence_number: 4, response: { id: "r", status: "completed", output: [] } }),
    ].join("");
    const out: SseFrame[] = [];
    const client = passes(codecs.responses, asked, () => {})(collectInto(out));
    for (const frame of run(readSse, [encode(stream)])) client.push(frame);
    client.end();
    const events = out.map(({ data = "" }) => JSON.parse(data));
    expect(events.map(({ type }) => type).at(-1)).toBe("response.completed");
    expect(events.flatMap(({ item_id, item }) => item_id ?? item?.id ?? [])).toEqual([id, id, id]);
  }
});

test("large frames end where they end, whatever their line ends and wherever they were cut", () => {
  const ends = fc.constantFrom("\n\n", "\r\r", "\r\n\r\n", "\n\r\n", "\r\n\n");
  const filler = fc.constantFrom("x".repeat(70_000), "data: y\n".repeat(9000), "data: y\r\n".repeat(8000));
  fc.assert(
    fc.property(
      filler,
      ends,
      fc.integer({ min: -9, max: 9 }),
      fc.integer({ min: 1, max: 6 }),
      (body, end, at, step) => {
        const bytes = encode(`data: ${body}${end}data: after\n\n`);
        const edge = 6 + body.length + at;
        const pieces = [bytes.slice(0, 65_600), bytes.slice(65_600, edge), ...cut(bytes.slice(edge), step)];
        const read = (chunks: Uint8Array[]) => run(readSse, chunks).flatMap(({ data }) => data ?? []);
        expect(read(pieces)).toEqual(read([bytes]));
        expect(read(pieces).at(-1)).toBe("after");
      },
    ),
    { ...runs, numRuns: triesOf(100) },
  );
});

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const gemini = "/v1beta/models/claude-sonnet-4.6:streamGenerateContent?alt=sse";
const dialectOf: Record<string, ClientDialect> = {
  [gemini]: "gemini",
  "/v1/chat/completions": "chat",
  "/chat/completions": "chat",
  "/v1/responses": "responses",
  "/responses": "responses",
  "/v1/messages": "messages",
};
const routes = [
  ["/v1/chat/completions", "claude-sonnet-4.6", "/v1/messages"],
  ["/v1/messages", "gpt-5.3-codex", "/responses"],
  ["/v1/responses", "claude-sonnet-4.6", "/v1/messages"],
  ["/v1/messages", "gemini-3.1-pro-preview", "/chat/completions"],
  ["/v1/responses", "gpt-5.3-codex", "/responses"],
  [gemini, "claude-sonnet-4.6", "/v1/messages"],
  ["/v1/chat/completions", "gpt-5-mini", "/chat/completions"],
  ["/v1/messages", "claude-sonnet-4.6", "/v1/messages"],
] as const;
test.each(routes)("%s to %s: a request of anything is served or refused, never 500", async (path, model) => {
  const requests = fc.oneof(object, almost(dialectOf[path]!, "request"));
  for (const body of fc.sample(requests, { numRuns: triesOf(200) })) {
    const response = await proxy.post(path, { ...body, model, stream: false });
    const text = await response.text();
    expect([response.status < 500 || response.status === 502, text, body]).toEqual([true, text, body]);
    if (path !== gemini) expect(JSON.parse(text)).toBeObject();
  }
});

test.each(routes)(
  "%s to %s: an answer of anything ends, in an error unless it was whole",
  async (path, model, endpoint) => {
    const input = [{ role: "user", content: "Hello" }];
    const streams = fc.oneof(stream, almostStream(dialectOf[endpoint] as Dialect));
    for (const bytes of fc.sample(streams, { numRuns: triesOf(150) })) {
      proxy.demo.intercept(endpoint, () => eventStream(Buffer.from(bytes)));
      const response = await proxy.post(path, {
        model,
        stream: true,
        max_tokens: 50,
        ...(path === "/v1/responses" ? { input, max_tokens: undefined } : { messages: input }),
        ...(path === gemini ? { contents: [{ parts: [{ text: "Hello" }] }] } : {}),
      });
      const text = await response.text();
      expect([200, 502, 400, 429]).toContain(response.status);
      if (response.status === 200) expectEndOf(dialectOf[path]!, run(readSse, [encode(text)]).filter(isEvent));
      else expect(JSON.parse(text).error.message).toBeString();
      expect(proxy.rows()[0]!.error_type !== "internal").toBe(true);
    }
  },
);

test("through a provider's route, an answer of anything ends, in an error unless it was whole", async () => {
  let bytes: Uint8Array = new Uint8Array();
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => eventStream(Buffer.from(bytes)),
  });
  await using proxy = await startProxy({
    config: { providers: { odd: { type: "anthropic", baseUrl: server.url.origin, apiKey: "key-of-the-provider" } } },
  });
  const body = { model: "m", max_tokens: 9, stream: true, messages: [{ role: "user", content: "Hello" }] };
  for (bytes of fc.sample(fc.oneof(stream, almostStream("messages")), { numRuns: triesOf(200) })) {
    const response = await proxy.post("/odd/v1/messages", body);
    const text = await response.text();
    const { error_type, stop_reason } = proxy.rows()[0]!;
    if (response.status !== 200) expect([response.status, JSON.parse(text).type]).toEqual([502, "error"]);
    else expect(/event: (?:message_stop|error)\b|"type": ?"(?:message_stop|error)"/.test(text)).toBe(true);
    expect(error_type !== null || stop_reason !== null || text.includes("message_stop")).toBe(true);
  }
});
