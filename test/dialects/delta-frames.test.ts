/** Deltas are read without the parser and written without the serializer, with the same result as the plain way. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { decodeFrames as chatFrames } from "../../src/dialects/chat/reply-reader";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { decodeFrames as messagesFrames } from "../../src/dialects/messages/reply-reader";
import { decodeFrames as responsesFrames } from "../../src/dialects/responses/reply-reader";
import { parseJson } from "../../src/json";
import { readSse, type SseFrame } from "../../src/net/sse";
import { pipe, run, type Stage } from "../../src/net/stream";
import fc from "../support/random";
import { bytesAt, chunksOf, fixtures, hasFixture, jsonAt, wire, written } from "../support/streams";

const plain: Record<Dialect, () => Stage<SseFrame, ReplyEvent>> = {
  chat: chatFrames,
  messages: messagesFrames,
  responses: responsesFrames,
};

/** The events, which are the same both ways. */
function expectSame(dialect: Dialect, chunks: Uint8Array[]): ReplyEvent[] {
  const events = run(pipe(readSse, codecs[dialect].decodeStream()), chunks);
  expect(events).toEqual(run(pipe(readSse, plain[dialect]()), chunks));
  return events;
}

const conversation = (client: Dialect) => codecs[client].decodeRequest(jsonAt("text", `${client}.request.json`));

/** Every frame is what the serializer makes of its JSON. */
function expectSerialized(frames: SseFrame[]): void {
  for (const { data } of frames)
    if (data !== undefined && data !== "[DONE]") expect(data).toBe(JSON.stringify(parseJson(data)));
}

const streams = readdirSync(fixtures).flatMap((folder) =>
  dialects
    .flatMap((dialect) => [
      [dialect, folder, `${dialect}.stream.txt`] as const,
      ...(folder.startsWith(`${dialect}-`) ? [[dialect, folder, "stream.txt"] as const] : []),
    ])
    .filter(([, , file]) => hasFixture(folder, file)),
);

describe.each(streams)("%s: %s", (dialect, folder, file) => {
  test("is read and written as with the parser and the serializer", () => {
    const bytes = bytesAt(folder, file);
    for (const size of [bytes.length, 7]) {
      const events = expectSame(dialect, chunksOf(bytes, size));
      for (const client of dialects)
        expectSerialized(written(codecs[client].encodeStream(conversation(client)), events));
    }
  });
});

test("there are streams of each dialect", () => {
  for (const dialect of dialects) expect(streams.filter(([name]) => name === dialect).length).toBeGreaterThan(10);
});

// ── Random texts ──

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(" word", "a", "größe 🎈") },
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom(
    "",
    '"',
    "\\",
    '\\"',
    "\n\ndata: [DONE]\n\n",
    '"}}]}\n\ndata: {"error":"x"}',
    '","index":1,"delta":"',
    '"sequence_number":5',
    "\u2028",
    "\ud83d",
    "\\u0041",
    "text",
    "assistant",
  ),
);

/** The ways in which upstreams serialize a string. */
const spelling = fc.constantFrom(
  (value: string) => JSON.stringify(value),
  (value: string) => JSON.stringify(value).replaceAll("/", "\\/"),
  (value: string) =>
    JSON.stringify(value).replace(/[^\0-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  (value: string) => `"${[...value].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`,
);

type Change = "none" | "number" | "odd-number" | "other-index" | "extra" | "cut" | "quote" | "spaces";

const piece = fc.record({
  text,
  spelling,
  change: fc.oneof(
    { weight: 8, arbitrary: fc.constant<Change>("none") },
    fc.constantFrom<Change>("number", "odd-number", "other-index", "extra", "cut", "quote", "spaces"),
  ),
  at: fc.nat(200),
});

/** One frame of a text, as the upstream of each dialect sends it. */
const deltaFrame: Record<Dialect, (serialized: string, number: number) => SseFrame> = {
  chat: (serialized, number) => ({
    data: `{"choices":[{"index":0,"content_filter_offsets":{"check_offset":${number},"end_offset":${number + 9}},"delta":{"content":${serialized}}}],"created":178500000${number % 10},"id":"c1","model":"gpt-4.1-2025-04-14"}`,
  }),
  messages: (serialized) => ({
    event: "content_block_delta",
    data: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${serialized}}}`,
  }),
  responses: (serialized, number) => ({
    event: "response.output_text.delta",
    data: `{"type":"response.output_text.delta","sequence_number":${number},"item_id":"m${number}","output_index":0,"content_index":0,"delta":${serialized},"logprobs":[],"obfuscation":"${"x".repeat(number % 3)}"}`,
  }),
};

const changes: Record<Change, (data: string, at: number) => string> = {
  none: (data) => data,
  number: (data) => data.replace(/(?<=_number":)\d+/, "12"),
  "odd-number": (data) => data.replace(/(?<="(?:created|sequence_number)":)\d+/, "012"),
  "other-index": (data) => data.replace(/(?<=index":)0/, "1"),
  extra: (data) => data.replace("{", '{"usage":{"prompt_tokens":1,"input_tokens":1},'),
  cut: (data, at) => data.slice(0, at % data.length) + data.slice((at % data.length) + 1),
  quote: (data, at) => `${data.slice(0, at % data.length)}"${data.slice(at % data.length)}`,
  spaces: (data) => data.replaceAll('":', '": '),
};

const begin: Record<Dialect, SseFrame[]> = {
  chat: [{ data: '{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"id":"c1","model":"m"}' }],
  messages: [
    { data: '{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{}}}' },
    { data: '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}' },
  ],
  responses: [
    { data: '{"type":"response.created","response":{"id":"resp_1","model":"m"}}' },
    { data: '{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}' },
  ],
};

test.each([...dialects])("%s: any texts, escaped and split in any way, are read as by the parser", (dialect) => {
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 4000 }), (pieces, size) => {
      const frames = pieces.map(({ text, spelling, change, at }, number) => {
        const { event, data = "" } = deltaFrame[dialect](spelling(text), number);
        return { event, data: changes[change](data, at) };
      });
      expectSame(dialect, chunksOf(wire([...begin[dialect], ...frames]), size));
    }),
    { numRuns: 1500 },
  );
});

test.each(dialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const)))(
  "%s ← %s: any texts arrive in frames that the serializer would have made",
  (client, upstream) => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 12 }), (texts) => {
        const frames = texts.map((one, number) => deltaFrame[upstream](JSON.stringify(one), number));
        const bytes = wire([...begin[upstream], ...frames]);
        const events = expectSame(upstream, [bytes]);
        const out = written(codecs[client].encodeStream(conversation(client)), events);
        expectSerialized(out);
        const again = run(pipe(readSse, codecs[client].decodeStream()), [wire(out)]);
        expect(textOf(again)).toBe(texts.join(""));
      }),
      { numRuns: 150 },
    );
  },
);

const textOf = (events: ReplyEvent[]) =>
  events.map((event) => (event.type === "block-delta" ? event.text : "")).join("");

const chatDelta = (delta: string, more = "") => `{"choices":[{"index":0,"delta":${delta}}]${more}}`;
const chatInput = (input: string) =>
  chatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":${JSON.stringify(input)}}}]}`);
const chatCall = (number: number) =>
  chatDelta(`{"tool_calls":[{"index":${number},"id":"call_${number}","function":{"name":"f","arguments":""}}]}`);
const messagesDelta = deltaFrame.messages('"a"', 0).data ?? "";
const responsesDelta = (obfuscation: string) => deltaFrame.responses('"a"', 0).data?.replace('""', `"${obfuscation}"`);

test.each<[string, Dialect, (string | undefined | SseFrame)[]]>([
  [
    "the same text in another field",
    "chat",
    ["a", "b"].map((note) => `{"note":"${note}",${chatDelta('{"content":"a"}').slice(1)}`),
  ],
  [
    "the same text in another field, spelt otherwise",
    "chat",
    ["a", "b"].map((note) => `{"note":"${note}",${chatDelta('{"content":"\\u0061"}').slice(1)}`),
  ],
  ["two texts in one frame", "chat", ["a", "b"].map((one) => chatDelta(`{"reasoning_text":"t","content":"${one}"}`))],
  [
    "input that ends a call",
    "chat",
    [chatCall(0), ...['{"', "a", '":', "1", "}"].map(chatInput), chatCall(1), "[DONE]"],
  ],
  ["something behind the JSON", "messages", [messagesDelta, `${messagesDelta}}`]],
  [
    "another event name, where the data has none",
    "messages",
    ["content_block_delta", "ping"].map((event) => ({
      event,
      data: messagesDelta.replace(/"type":"content_block_delta",/, ""),
    })),
  ],
  ["padding that is no JSON", "responses", [responsesDelta(""), responsesDelta("\\x")]],
  ["padding with a control character", "responses", [responsesDelta(""), responsesDelta("\t")]],
])("%s is read as by the parser", (_, dialect, given) => {
  const frames = given.map((one) => (typeof one === "object" ? one : { data: one }));
  const first = frames[0] ?? {};
  expectSame(dialect, [wire([...begin[dialect], first, ...frames])]);
});

test("a delta that differs only in its text is not parsed", () => {
  const parse = JSON.parse;
  for (const dialect of dialects) {
    const frames = Array.from({ length: 20 }, (_, number) => deltaFrame[dialect](`" word${number}"`, number));
    let parsed = 0;
    JSON.parse = ((...given: Parameters<typeof parse>) => {
      parsed++;
      return parse(...given);
    }) as typeof parse;
    try {
      const stream = wire([...begin[dialect], ...frames]);
      expect(textOf(run(pipe(readSse, codecs[dialect].decodeStream()), [stream]))).toContain(" word19");
    } finally {
      JSON.parse = parse;
    }
    // The beginning, and the first two deltas: the first one opens the block.
    expect(parsed).toBeLessThanOrEqual(begin[dialect].length + 2);
  }
});
