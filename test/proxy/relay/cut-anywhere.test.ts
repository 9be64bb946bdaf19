/**
 * Property: a stream that is passed on is the same for the client and in the book, wherever its bytes were cut on their
 * way.
 */
import { afterAll, beforeAll, expect, setSystemTime, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import type { ResponseBody } from "../../../src/lib/net/out/body";
import { gatherFrames } from "../../../src/lib/net/stream/sse";
import { verbatim } from "../../../src/proxy/relay/passthrough";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { copilotStreams } from "../../support/copilot-forms";
import { Comparison, chunkSizes } from "../../support/differential";
import { exchangeOf } from "../../support/exchange";
import { passOn } from "../../support/passed-on";
import fc, { drawn, triesOf } from "../../support/random";
import { bytesAt, chunksOf, fixtures } from "../../support/streams";

beforeAll(() => void setSystemTime(new Date("2026-08-01T12:00:00Z")));
afterAll(() => void setSystemTime());

const model = "gpt-4.1";
const encode = (text: string) => new TextEncoder().encode(text);

/** What the client gets and what the book keeps of a stream that came in these chunks. */
function outcome(dialect: Dialect, chunks: Iterable<Uint8Array>, more?: object) {
  const passed = passOn(dialect, model, more);
  for (const chunk of chunks) passed.push(chunk);
  passed.end();
  // Where a chunk ends between CR and LF, the LF becomes a blank line more, which means nothing.
  const text = passed
    .bytes()
    .toString("latin1")
    .replace(/[\r\n]{2,}/g, "\n\n")
    .trimStart();
  return { text, fixups: passed.fixups, events: passed.events };
}

const streams = readdirSync(fixtures).flatMap((folder) =>
  readdirSync(join(fixtures, folder)).flatMap((file) => {
    const dialect = dialects.find((each) => file.startsWith(`${each}.`) || folder.startsWith(`${each}-`));
    return /(^|\.)stream\.txt$/.test(file) && dialect ? [{ folder, file, dialect }] : [];
  }),
);

test("The streams of the fixtures are the same in chunks of any size and with either line ending.", () => {
  const comparison = new Comparison();
  for (const { folder, file, dialect } of streams) {
    const text = Buffer.from(bytesAt(folder, file)).toString();
    for (const spelling of [text, text.replaceAll("\n", "\r\n")]) {
      const bytes = encode(spelling);
      const whole = outcome(dialect, [bytes]);
      for (const size of chunkSizes)
        comparison.same(`${folder}/${file} by ${size}`, outcome(dialect, chunksOf(bytes, size)), whole);
    }
  }
  comparison.expectAtLeast(900);
});

const forms = copilotStreams(model);
const names = Object.keys(forms);

/** Where bytes can be cut. */
const placesIn = ({ length }: Uint8Array) => Array.from({ length }, (_, at) => at);

test.each(drawn("cut in two", names, 3))(
  "A stream of the form %s is the same when it is cut in two at any byte.",
  (name) => {
    const { dialect, begin, words, end } = forms[name]!;
    const bytes = encode(
      begin + ["One", " two, größe 世界", '\n"three"\\', ""].map((text, at) => words(text, at)).join("") + end,
    );
    const whole = outcome(dialect, [bytes]);
    for (const at of drawn(name, placesIn(bytes)))
      expect(outcome(dialect, [bytes.slice(0, at), bytes.slice(at)]), `cut at ${at}`).toEqual(whole);
  },
);

test.each(drawn("broken off", names))(
  "A stream of the form %s that breaks off at any byte ends once, and with an error before its finish.",
  (name) => {
    const { dialect, begin, words, end } = forms[name]!;
    const unfinished = encode(begin + ["One", " two, größe"].map((text, at) => words(text, at)).join(""));
    const bytes = encode(Buffer.from(unfinished).toString() + end);
    for (const length of drawn(name, placesIn(bytes))) {
      const ends = outcome(dialect, [bytes.slice(0, length)]).events.filter(
        ({ type }) => type === "finish" || type === "error",
      );
      expect(ends, `cut at ${length}`).toHaveLength(1);
      if (length <= unfinished.length) expect(ends[0]!.type, `cut at ${length}`).toBe("error");
    }
  },
);

/** Changes that make an unusual event of a usual one. */
const oddities: [string, (frame: string) => string][] = [
  ["another model", (frame) => frame.replace(/"model":"[^"]*"/, '"model":"other"')],
  ["no model", (frame) => frame.replace(/"model":"[^"]*"/, '"x":1')],
  ["the model twice", (frame) => frame.replace(/("model":"[^"]*")/, '"copilot_usage":{$1},$1')],
  ["another object", (frame) => frame.replace(/\{/, '{"object":"",')],
  ["an object of a tool", (frame) => frame.replace(/\{/, '{"arguments":{"model":"gpt-4.1-2025-04-14","object":"x"},')],
  ["a finish", (frame) => frame.replace('"index":0', '"index":0,"finish_reason":"stop"')],
  ["an error", (frame) => frame.replace(/\{/, '{"error":{"message":"no"},')],
  ["a wrong finish", (frame) => frame.replace('"index":0', '"index":0,"finish_reason":"error"')],
  ["another index", (frame) => frame.replace('"index":0', '"index":1')],
  ["another item", (frame) => frame.replace('"output_index":0', '"output_index":1')],
  ["an escaped id", (frame) => frame.replace('"item_id":"', '"item_id":"\\u006d')],
  ["a call", (frame) => frame.replace(/"(content|text)":/, '"tool_calls":[{"index":0,"id":"c","function":{}}],"$1":')],
  ["usage", (frame) => frame.replace(/\{/, '{"usage":{"prompt_tokens":5,"completion_tokens":6},')],
  ["Copilot's own", (frame) => frame.replace(/\{/, '{"copilot_usage":{"total_nano_aiu":9},')],
  ["broken JSON", (frame) => frame.replace(/\}\n\n$/, "\n\n")],
  ["a raw control character", (frame) => frame.replace(/"(content|text|delta|arguments|partial_json)":"/, '"$1":"\t')],
  ["an unknown escape", (frame) => frame.replace(/"(content|text|delta|arguments|partial_json)":"/, '"$1":"\\x')],
  [
    "an escaped word",
    (frame) => frame.replace(/"(content|text|delta|arguments|partial_json)":"/, '"$1":"\\u003cb\\u003e\\/'),
  ],
  ["spaces", (frame) => frame.replace(":{", ": {")],
  ["CRLF", (frame) => frame.replaceAll("\n", "\r\n")],
  ["a comment", (frame) => `: hello\n\n${frame}`],
  ["an empty event", (frame) => `data:\n\n${frame}`],
  ["no choices", () => 'data: {"choices":[]}\n\n'],
  ["another event", (frame) => `event: other\ndata: {"type":"other"}\n\n${frame}`],
  ["a number with a dot", (frame) => frame.replace(/("(?:created|sequence_number)":\d+)/, "$1.0")],
];

const piece = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 6 }),
  fc.constantFrom("assistant", "stop", "safe", "0", '","model":"gpt-4.1-2025-04-14"', "\n\n", "data: {", "\ud83d", "ü"),
);
const event = fc.record({
  text: piece,
  odd: fc.array(fc.constantFrom(...oddities), { maxLength: 2 }),
});

/** An unusual event several times, because the one before it matters too. */
const events = fc.array(fc.tuple(event, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 8 });

test.each(drawn("odd", names, 4))(
  "A stream of the form %s is the same in any chunks, whatever unusual events it has.",
  (name) => {
    const { dialect, begin, words, end } = forms[name]!;
    const seen = new Set<string>();
    fc.assert(
      fc.property(
        events,
        fc.integer({ min: 1, max: 2500 }),
        fc.boolean(),
        fc.constantFrom({}, { stream_options: undefined }, { n: 2 }),
        fc.constantFrom(end, "data: [DONE]\n\n", ""),
        (all, size, isSpoilt, more, last) => {
          let at = 0;
          const texts = all.flatMap(([{ text, odd }, times]) =>
            Array.from({ length: times }, () => {
              const frame = words(text + at, at++);
              return odd.reduce((spoilt, [, spoil]) => spoil(spoilt), frame);
            }),
          );
          for (const [{ odd }] of all) for (const [what] of odd) seen.add(what);
          const bytes = encode(begin + texts.join("") + last);
          // A byte that is not UTF-8.
          if (isSpoilt) bytes[Math.floor(bytes.length / 2)] = 0xff;
          expect(outcome(dialect, chunksOf(bytes, size), more)).toEqual(outcome(dialect, [bytes], more));
        },
      ),
      // Each of them once, and then as they are drawn.
      {
        numRuns: oddities.length + triesOf(200),
        examples: oddities.map((odd) => [[[{ text: "one", odd: [odd] }, 2]], 100, false, {}, end]),
      },
    );
    expect(seen.size).toBe(oddities.length);
  },
);

test("A model name that is not ASCII is written as the client asked for it.", () => {
  const { dialect, begin, words, end } = forms["chat, GPT"]!;
  const passed = passOn(dialect, "größe");
  passed.push(encode(begin + ["one", "two", "three"].map(words).join("") + end));
  const text = passed.bytes().toString();
  expect(text.match(/"model":"größe"/g)?.length).toBeGreaterThan(4);
});

test("After an event of our own, the events of the responses dialect are numbered on.", () => {
  const { dialect, begin, words } = forms.responses!;
  const passed = passOn(dialect, model);
  passed.push(encode(begin + words("one", 0)));
  passed.keepAlive();
  for (const at of [1, 2]) passed.push(encode(words("more", at)));
  const numbers = [
    ...passed
      .bytes()
      .toString()
      .matchAll(/"sequence_number":(\d+)/g),
  ].map(([, number]) => Number(number));
  expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(passed.fixups).toContain("sequence-number");
});

test.each(["messages, dated", "messages, calling a tool"] as const)(
  "A stream of the form %s from a provider is passed on byte by byte.",
  (name) => {
    const { begin, words, end } = forms[name]!;
    const whole = begin + Array.from({ length: 100 }, (_, at) => words(` größe ${at}`, at)).join("") + end;
    for (const size of [...chunkSizes, whole.length * 2]) {
      const incoming = { bytes: encode("{}"), body: {}, model, stream: true };
      const facts = readModel({ id: model, vendor: "any", capabilities: { type: "chat" } })!;
      const target = { model: facts, upstreamModel: facts, dialect: "messages" as const, endpoint: "provider:any" };
      const { exchange, recorded } = exchangeOf(incoming, "messages");
      const out = gatherFrames();
      // Nobody reads the body: its chunks are pushed.
      const answer = { body: {} as ResponseBody, isStream: true };
      const { reply } = verbatim(exchange, target);
      const { bytes: source } = reply.open(answer, reply.stream(out));
      for (const chunk of chunksOf(encode(whole), size)) source.push(chunk);
      source.end();
      expect(Buffer.from(out.take()!).toString()).toBe(whole);
      expect(recorded.events.at(-1)?.type).toBe("finish");
    }
  },
);
