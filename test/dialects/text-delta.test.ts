import { expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { deltaReader, type TextSlot } from "../../src/dialects/hub/text-delta";
import { isObject } from "../../src/json";
import { jsonOf, type SseFrame } from "../../src/net/sse";

const leafOf = (json: unknown): TextSlot | undefined =>
  isObject(json) && isObject(json.delta) && typeof json.delta.text === "string" ? [json.delta, "text"] : undefined;
const frame = (json: unknown): SseFrame => ({ data: JSON.stringify(json) });
/** What was read of each frame at once, since the next may change it. */
const readAll = (frames: SseFrame[]) =>
  frames.map(
    (
      (read) => (each: SseFrame) =>
        structuredClone(read(each))
    )(deltaReader(leafOf)),
  );

test("frames that differ in their words are read as if each were parsed", () => {
  const word = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom('"', "\\", '"}', '","x":"', "\n", "\u2028", "größe 🎈", "\\u0041"),
  );
  const chunk = fc.record({
    id: fc.constantFrom(1, 2),
    delta: fc.record({ text: word, other: fc.constantFrom("a", "b") }),
  });
  fc.assert(
    fc.property(fc.array(chunk), (chunks) => expect(readAll(chunks.map(frame))).toEqual(chunks)),
    { numRuns: 1000 },
  );
});

test("frames with spaces or escapes are read as well", () => {
  const frames = ["Hé", "you", "\\u0041", "\\", '\\"'].map((text) => ({ data: `{ "delta" : {"text": "${text}"} }` }));
  expect(readAll(frames)).toEqual(frames.map(({ data }) => jsonOf({ data })));
});

test("what only looks like a repeat is no JSON", () => {
  for (const text of ["\t", '"', 'a"b', "\\", "\\x", '","delta":"'])
    expect(readAll([frame({ delta: { text: "a" } }), { data: `{"delta":{"text":"${text}"}}` }])[1]).toEqual(
      jsonOf({ data: `{"delta":{"text":"${text}"}}` }),
    );
});

test("the same words in another place are not taken for those of the delta", () => {
  const frames = [
    { text: "a", delta: { text: "a" } },
    { text: "c", delta: { text: "a" } },
    { text: "c", delta: { text: "d" } },
  ] satisfies JsonObject[];
  expect(readAll(frames.map(frame))).toEqual(frames);
});

test("a frame somebody else has read stays as it was", () => {
  const frames = ["a", "b", "c"].map((text) => frame({ delta: { text } }));
  const before = frames.map((each) => jsonOf(each));
  readAll(frames);
  expect(before).toEqual([{ delta: { text: "a" } }, { delta: { text: "b" } }, { delta: { text: "c" } }]);
});
