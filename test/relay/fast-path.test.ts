/** Frames that differ only in their delta are passed on unread: with the same bytes and facts as when each is read. */
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { gatherFrames, readSse } from "../../src/net/sse";
import { providerPassthrough } from "../../src/relay/provider-passthrough";
import type { RequestRecord } from "../../src/relay/request-record";
import { copilotStreams, type FormName } from "../support/copilot-streams";
import { passOn } from "../support/passed-on";
import fc from "../support/random";
import { bytesAt, fixtures } from "../support/streams";

beforeAll(() => void setSystemTime(new Date("2026-08-01T12:00:00Z")));
afterAll(() => void setSystemTime());

const model = "gpt-4.1";
const encode = (text: string) => new TextEncoder().encode(text);

interface Way {
  dialect: Dialect;
  cuts: Uint8Array[];
  /** After which piece the upstream is silent for a while. */
  silentAfter?: number;
  more?: object;
}

function result({ dialect, cuts, silentAfter, more }: Way, path: "fast" | "plain") {
  const passed = passOn(dialect, model, path, more);
  for (const [at, cut] of cuts.entries()) {
    passed.push(cut);
    if (at === silentAfter) passed.keepAlive();
  }
  passed.end();
  return { text: passed.bytes().toString("latin1"), fixups: passed.fixups, events: passed.events };
}

const expectSame = (way: Way) => expect(result(way, "fast")).toEqual(result(way, "plain"));

const inPieces = (bytes: Uint8Array, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size));

const streams = readdirSync(fixtures).flatMap((folder) =>
  readdirSync(join(fixtures, folder)).flatMap((file) => {
    const dialect = dialects.find((each) => file.startsWith(`${each}.`) || folder.startsWith(`${each}-`));
    return /(^|\.)stream\.txt$/.test(file) && dialect ? [{ folder, file, dialect }] : [];
  }),
);

describe("a fixture", () => {
  test.each(streams)("$folder/$file", ({ folder, file, dialect }) => {
    const text = Buffer.from(bytesAt(folder, file)).toString();
    for (const spelling of [text, text.replaceAll("\n", "\r\n")]) {
      const bytes = encode(spelling);
      for (const size of [...Array(12).keys()].map((at) => at + 1).concat(59, 400, 1000, bytes.length))
        expectSame({ dialect, cuts: inPieces(bytes, size) });
    }
  });

  test("is there for every dialect", () => expect(new Set(streams.map(({ dialect }) => dialect)).size).toBe(3));
});

const forms = copilotStreams(model);
const names = Object.keys(forms) as FormName[];

describe("a stream as Copilot sends it", () => {
  test.each(names)("%s: most frames are not read", (name) => {
    const { dialect, begin, words, end } = forms[name];
    const passed = passOn(dialect, model, "fast");
    passed.push(encode(begin));
    for (let at = 0; at < 200; at++) passed.push(encode(words(` word${at}`, at)));
    passed.push(encode(end));
    expect(passed.framesRead).toBeLessThan(15);
  });

  test.each(names)("%s: cut at every byte", (name) => {
    const { dialect, begin, words, end } = forms[name];
    const whole = encode(
      begin + ["One", " two, größe 世界", '\n"three"\\', "", " four"].map((text, at) => words(text, at)).join("") + end,
    );
    const plain = result({ dialect, cuts: [whole] }, "plain");
    for (let at = 0; at <= whole.length; at++)
      expect(result({ dialect, cuts: [whole.slice(0, at), whole.slice(at)] }, "fast")).toEqual(plain);
  });

  test.each(names)("%s: broken off at every byte", (name) => {
    const { dialect, begin, words, end } = forms[name];
    const whole = encode(begin + ["One", " two, größe", " three"].map((text, at) => words(text, at)).join("") + end);
    for (let length = 0; length < whole.length; length++) expectSame({ dialect, cuts: [whole.slice(0, length)] });
  });
});

/** What a frame may look like that breaks the row: spelled from a good one. */
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

test("a model name that is not ASCII is written as it was asked for", () => {
  const { dialect, begin, words, end } = forms["chat, GPT"];
  const passed = passOn(dialect, "größe", "fast");
  passed.push(encode(begin + ["one", "two", "three"].map(words).join("") + end));
  expect(
    passed
      .bytes()
      .toString()
      .match(/"model":"größe"/g)?.length,
  ).toBeGreaterThan(4);
});

test("a choice that is written anew has its text in our spelling, also where only the text differs", () => {
  const { dialect, begin, words, end } = forms["chat, GPT"];
  const second = (text: string) => words(text, 0).replace('"index":0', '"index":1');
  const spelt = second("WORD").replace("WORD", "\\u003cb\\u003e\\/");
  expectSame({ dialect, cuts: [encode(begin + second("one") + second("two") + spelt + second("three") + end)] });
});

describe("a call whose finish reason is missing, read in one piece", () => {
  const { dialect, begin, words } = forms["chat, GPT calling a tool"];
  const input = [...'{"path": "src", "lines": [10, 20]}'];
  const stream = (pieces: string[]) =>
    encode(`${begin.replace('{\\"text\\":\\"', "")}${pieces.map(delta).join("")}data: [DONE]\n\n`);
  const delta = (piece: string) => words("@", 0).replace("@", () => JSON.stringify(piece).slice(1, -1));

  test("is complete if its input is", () => {
    const way = { dialect, cuts: [stream(input)] };
    expectSame(way);
    const { fixups, events } = result(way, "fast");
    expect(fixups).toContain("finish-reason");
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool-call" });
  });

  test("is an error if its input is cut", () => {
    const way = { dialect, cuts: [stream(input.slice(0, -1))] };
    expectSame(way);
    expect(result(way, "fast").events.at(-1)?.type).toBe("error");
  });
});

test.each(["messages, dated", "messages, calling a tool"] as const)(
  "%s, from a provider: every byte is passed on, most frames unread",
  (name) => {
    const { begin, words, end } = forms[name];
    const whole = begin + Array.from({ length: 100 }, (_, at) => words(` größe ${at}`, at)).join("") + end;
    for (const size of [1, 100, 1000, whole.length]) {
      const events: ReplyEvent[] = [];
      const record = {
        addFixup() {},
        conceal: String,
        addEvent: (event: ReplyEvent) => void events.push(event),
        get isOver() {
          return events.at(-1)?.type === "finish";
        },
      } as unknown as RequestRecord;
      const incoming = { bytes: encode("{}"), body: {}, model, stream: true };
      const out = gatherFrames();
      const { feed } = providerPassthrough(incoming, record, "A provider").stages(out);
      let framesRead = 0;
      const source = readSse({
        push(frame) {
          if (frame.template === undefined) framesRead++;
          feed.push(frame);
        },
        end: () => feed.end(),
        template: () => feed.template?.(),
      });
      for (const cut of inPieces(encode(whole), size)) source.push(cut);
      source.end();
      expect(Buffer.from(out.take()!).toString()).toBe(whole);
      expect(events.at(-1)?.type).toBe("finish");
      expect(framesRead).toBeLessThan(20);
    }
  },
);

/** Some rows are told apart only by frames that follow, so a good one comes several times. */
const events = fc.array(fc.tuple(event, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 8 });

test.each(names)("%s: whatever comes between, and wherever it is cut", (name) => {
  const { dialect, begin, words, end } = forms[name];
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      events,
      fc.integer({ min: 1, max: 2500 }),
      fc.integer({ min: 0, max: 30 }),
      fc.boolean(),
      fc.constantFrom({}, { stream_options: undefined }, { n: 2 }),
      fc.constantFrom(end, "data: [DONE]\n\n", ""),
      (all, size, silentAfter, isSpoilt, more, last) => {
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
        expectSame({ dialect, cuts: inPieces(bytes, size), silentAfter, more });
      },
    ),
    { numRuns: 300 },
  );
  expect(seen.size).toBe(oddities.length);
});
