/** Rows: long texts that stay in the bytes: the skeleton says what the whole JSON says, and refuses what it refuses. */
import { expect, test } from "bun:test";
import { parseJson } from "../../../src/lib/json";
import {
  fillExcept,
  type LongText,
  measureText,
  skeletonOf,
  bytesOf as textBytes,
} from "../../../src/lib/net/json/json-skeleton";
import fc, { triesOf } from "../../support/random";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (...pieces: (string | Uint8Array)[]) => pieces.map((piece) => Buffer.from(piece as Uint8Array)).join("");
/** What the text is, read by way of the skeleton where it has one. */
function throughSkeleton(bytes: Uint8Array): unknown {
  const skeleton = skeletonOf(bytes);
  if (!skeleton) return parseJson(textOf(bytes));
  const parsed = parseJson(skeleton.text);
  return parsed === undefined ? undefined : fillExcept(parsed, skeleton, {});
}

/** The inside of a JSON string, as clients may write it: characters, escapes, and what only looks like an escape. */
const inside = fc
  .array(
    fc.constantFrom(
      "plain words ",
      "ß",
      "語",
      "😀",
      "\\\\",
      '\\"',
      "\\n",
      "\\/",
      "\\u00e9",
      "\\ud83d\\ude00",
      "\\ud800",
      "{[:,",
      "u0010",
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((pieces) => pieces.join(""));
const text = fc
  .tuple(inside, fc.constantFrom(0, 1, 300, 319, 320, 321, 2047, 2048, 2049, 5000), inside)
  .map(([start, length, end]) => `"${start.repeat(Math.ceil(length / start.length))}${end}"`);
const space = fc.constantFrom("", " ", "\n\t");
const json = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.constantFrom("1.0", "true", "null", "[]", "{}"),
    fc.tuple(fc.array(tie("value"), { maxLength: 3 }), space).map(([items, gap]) => `[${gap}${items.join(`${gap},`)}]`),
    fc
      .tuple(
        fc.array(fc.tuple(fc.oneof(text, fc.constantFrom('"a"', '"__proto__"', '"text"')), tie("value")), {
          maxLength: 3,
        }),
        space,
      )
      .map(([members, gap]) => `{${members.map(([key, value]) => `${gap}${key}${gap}:${gap}${value}`).join(",")}}`),
  ),
})).value;

test("a skeleton has few of the bytes of a long text, and gives all of them back", () => {
  const sent = JSON.stringify({ content: "hello ß ".repeat(100_000), model: "m" });
  const skeleton = skeletonOf(bytesOf(sent))!;
  expect(skeleton.text.length).toBeLessThan(1000);
  expect(textOf(...skeleton.fill(skeleton.text))).toBe(sent);
  expect(JSON.parse(skeleton.text).content).toStartWith("hello ß hello");
  expect(skeleton.whole(JSON.parse(skeleton.text).content)).toBe(JSON.parse(sent).content);
});

test("a marked text tells how long it is without being read, and its beginning is read without the rest", () => {
  for (const piece of ["x", "ß", "語", "😀", "\\", '"', "\n", "a\u0001"]) {
    const long = piece.repeat(3000);
    const skeleton = skeletonOf(bytesOf(JSON.stringify([long])))!;
    const [marked] = JSON.parse(skeleton.text);
    const { length } = bytesOf(long);
    expect(textBytes(long)).toBe(length);
    expect(textBytes(`<${marked}>`)).toBeWithin(length, 8 * length);
    for (const most of [0, 1, 2, 3, 700, 1000]) {
      const read = skeleton.whole(marked, most);
      expect(long.startsWith(read)).toBe(true);
      expect(read.length).toBeWithin(Math.floor(most / 6), most + 1);
    }
  }
});

test.each([false, true])(
  "a text has one measure, marked or not, and a longer one of its letters another (all: %p)",
  (hasAll) => {
    const of = (text: LongText, json?: Uint8Array) => {
      const to = { bytes: 0, hash: 0 };
      measureText(to, text, json, hasAll);
      return to;
    };
    for (const piece of ["a", "ß", "語", '"', "aß", "ßa"])
      for (const count of [1, 17, 321, 2048, 4000, 100_000]) {
        const text = piece.repeat(count);
        if (count === 1) expect(of(text).bytes).toBe(bytesOf(text).length);
        const json = bytesOf(JSON.stringify([text]));
        const skeleton = skeletonOf(json);
        if (skeleton) expect(of(JSON.parse(skeleton.text)[0], json)).toEqual(of(text));
        for (const short of ["short", "short;"]) expect(of(short, json)).toEqual(of(short));
        for (const more of [1, 2, 100]) expect(of(text + piece.repeat(more)).hash).not.toBe(of(text).hash);
      }
  },
);

test("a skeleton says what the JSON says, whatever is in its texts", () => {
  let made = 0;
  fc.assert(
    fc.property(json, (sent) => {
      const bytes = bytesOf(sent);
      expect(throughSkeleton(bytes)).toEqual(JSON.parse(sent));
      const skeleton = skeletonOf(bytes);
      if (!skeleton) return;
      made++;
      expect(textOf(...skeleton.fill(skeleton.text))).toBe(sent);
      expect(JSON.parse(textOf(...skeleton.fill(JSON.stringify(JSON.parse(skeleton.text)))))).toEqual(JSON.parse(sent));
    }),
    { numRuns: triesOf(500) },
  );
  expect(made, "texts long enough for a skeleton").toBeGreaterThan(10);
});

test("a skeleton refuses what JSON.parse refuses: cut at any byte, or with any byte replaced", () => {
  const sent = `{"a":"${"x\\n\\u00e9".repeat(240)}\\\\","b":["${'\\"ß'.repeat(520)}"],"${"k".repeat(2100)}" :1}`;
  const bytes = bytesOf(sent);
  expect(skeletonOf(bytes)).toBeDefined();
  const isRefused = (given: Uint8Array) => throughSkeleton(given) === undefined;
  const taken = Array.from(bytes.keys()).filter((length) => !isRefused(bytes.subarray(0, length)));
  expect(taken).toEqual([]);
  const odd = [0x1f, 0x22, 0x5c, 0x75];
  const differing = Array.from(bytes.keys()).flatMap((at) =>
    odd.flatMap((byte) => {
      const changed = bytes.slice();
      changed[at] = byte;
      return isRefused(changed) === (parseJson(textOf(changed)) === undefined) ? [] : [[at, byte]];
    }),
  );
  expect(differing).toEqual([]);
});

test("a skeleton is not made of JSON with U+0010, so that no text is taken for a mark", () => {
  const long = "x".repeat(3000);
  const [, mark] = /(\\u0010\w+;)/.exec(skeletonOf(bytesOf(JSON.stringify([long, "other"])))!.text)!;
  expect(skeletonOf(bytesOf(`["${long}","${mark}"]`))).toBeUndefined();
  expect(skeletonOf(bytesOf(`{"${mark}":"${long}"}`))).toBeUndefined();
  // An escaped backslash: these are the characters of a mark, and not U+0010.
  const escaped = `["${long}","\\${mark}"]`;
  expect(throughSkeleton(bytesOf(escaped))).toEqual(JSON.parse(escaped));
});

test("a skeleton keeps a long key", () => {
  const sent = `{"${"k".repeat(3000)}"\n : "${"v".repeat(3000)}"}`;
  const skeleton = skeletonOf(bytesOf(sent))!;
  expect(Object.keys(JSON.parse(skeleton.text))).toEqual(["k".repeat(3000)]);
  expect(throughSkeleton(bytesOf(sent))).toEqual(JSON.parse(sent));
});

test.each([0, 1, 2, 3])("a skeleton writes a text into %d strings of JSON as if it had been there", (layers) => {
  const nested = (value: unknown) => {
    for (let layer = 0; layer < layers; layer += 1) value = ["beside", JSON.stringify(value), "\\"];
    return JSON.stringify(value);
  };
  for (const end of ["", "\\", "\\\\", '"', "/\n\u2028ß😀"]) {
    const value = { a: `${"x".repeat(318)}${end}${`${end}y`.repeat(3000)}`, b: 1 };
    const skeleton = skeletonOf(bytesOf(JSON.stringify(value)))!;
    expect(textOf(...skeleton.fill(nested(JSON.parse(skeleton.text))))).toBe(nested(value));
  }
});

test("texts are cut out only at the places where marks may stay", () => {
  const long = "x".repeat(3000);
  const body = { content: [long, { text: long, data: long }], other: long };
  const skeleton = skeletonOf(bytesOf(JSON.stringify(body)))!;
  const place = {
    members: { content: { keeps: () => true, members: { text: { keeps: (start: string) => start[0] === "x" } } } },
  };
  const kept = fillExcept(JSON.parse(skeleton.text), skeleton, place);
  expect(kept.other).toBe(long);
  expect(kept.content[1].data).toBe(long);
  for (const text of [kept.content[0], kept.content[1].text]) {
    expect(text.length).toBeLessThan(400);
    expect(skeleton.whole(`<${text}>`)).toBe(`<${long}>`);
  }
});
