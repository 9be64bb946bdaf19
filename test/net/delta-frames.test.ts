/** Frames that are known to be of no concern to anybody are told in one, and nothing else is. */
import { expect, test } from "bun:test";
import { repeatedDelta } from "../../src/dialects/hub/repeated-delta";
import type { FrameTemplate } from "../../src/net/frame-template";
import { type FrameSink, readSse, type SseFrame } from "../../src/net/sse";
import fc from "../support/random";

const encode = (text: string) => new TextEncoder().encode(text);
const frameOf = (words: string, number = 0) =>
  `event: delta\ndata: {"sequence_number":${number},"delta":"${words}","obfuscation":"x${number}"}\n\n`;

/** What is told of the chunks by a reader whose every frame with a delta may be repeated. */
function read(chunks: Uint8Array[]): SseFrame[] {
  const told: SseFrame[] = [];
  let repeat: FrameTemplate | undefined;
  const sink: FrameSink = {
    push(frame) {
      told.push(frame);
      if (frame.template !== undefined) return;
      const { delta } = JSON.parse(frame.data ?? "{}") as { delta?: string };
      repeat = delta === undefined ? undefined : repeatedDelta(frame, frame, delta);
    },
    template: () => repeat,
    end() {},
  };
  const source = readSse(sink);
  for (const chunk of chunks) source.push(chunk);
  source.end();
  return told;
}

test("frames that differ in words, number and padding become one, with the data of the last one", () => {
  const first = frameOf("Hel");
  const others = [frameOf("lo, ", 1), frameOf('\\"you\\n\\u00e9', 2), frameOf("", 13)];
  const [one, rest, ...none] = read([encode(first + others.join(""))]);
  expect(one?.data).toContain('"Hel"');
  expect(Buffer.from(rest!.bytes!).toString()).toBe(others.join(""));
  expect(rest?.data).toBeUndefined();
  expect(JSON.parse(rest!.template!.data!)).toEqual({ sequence_number: 13, delta: "", obfuscation: "x13" });
  expect(none).toEqual([]);
});

test.each([
  ["broken JSON", frameOf('a","b":{"')],
  ["a control character", frameOf("a\tb")],
  ["an escape JSON does not know", frameOf("a\\x41")],
  ["half an escape", frameOf("a\\u12")],
  ["a number no JSON has", frameOf("a", 0).replace(":0,", ":01,")],
  ["another event", frameOf("a").replace("event: delta", "event: other")],
  ["another member", frameOf("a").replace("}", ',"usage":{"total":1}}')],
  ["words that end the frame early", 'event: delta\ndata: {"sequence_number":0,"delta":"a\n\n'],
])("%s is no repeat", (_, odd) => {
  const source = readFirst(encode(frameOf("Hel") + odd));
  expect(source.some(({ template: repeats }) => repeats !== undefined)).toBe(false);
});

test("whatever the words are and wherever the chunks are cut, the bytes arrive once and in order", () => {
  const words = fc.array(fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constant("größe")), {
    minLength: 1,
  });
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 200 }), (all, size) => {
      const stream = all.map((each, at) => frameOf(JSON.stringify(each).slice(1, -1), at)).join("");
      const bytes = encode(stream);
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.slice(at * size, (at + 1) * size),
      );
      const told = read(chunks);
      expect(Buffer.concat(told.map((frame) => frame.bytes ?? new Uint8Array(0))).toString()).toBe(stream);
    }),
    { numRuns: 300 },
  );
});

/** The same without parsing what may be broken. */
function readFirst(bytes: Uint8Array): SseFrame[] {
  const told: SseFrame[] = [];
  let repeat: FrameTemplate | undefined;
  const source = readSse({
    push(frame) {
      told.push(frame);
      repeat = told.length === 1 ? repeatedDelta(frame, frame, "Hel") : undefined;
    },
    template: () => repeat,
    end() {},
  });
  source.push(bytes);
  source.end();
  return told;
}
