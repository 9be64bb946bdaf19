/** Rows: JSON that is written again with the source text of its numbers. */
import { expect, test } from "bun:test";
import { isObject, numberIn, parseWithSource, SourceNumber } from "../../src/lib/json";
import fc from "../support/random";

const odd = ["1e3", "1E+2", "-0", "1.0", "-0.0", "0.10", "9007199254740993", "12345678901234567890", "1e400", "0e0"];

test.each(odd)("numbers: %s keeps its source text", (serialized) => {
  for (const text of [
    serialized,
    `[${serialized}]`,
    `{"a":${serialized},"b":["1.0",${serialized}]}`,
    `[0,{"a\\\\":[ ${serialized}\n]}]`,
  ]) {
    const json = parseWithSource(text);
    expect(JSON.stringify(json)).toBe(text.replace(/\s/g, ""));
  }
  const read = parseWithSource(serialized);
  expect(read).toBeInstanceOf(SourceNumber);
  expect(isObject(read)).toBe(false);
  expect(numberIn(read)).toBe(Number(serialized));
  expect(`${read}`).toBe(serialized);
});

test.each(["0", "-1", "1.5", "0.1", "123456789012", "1e+21", "9007199254740992"])(
  "numbers: %s is a plain one",
  (serialized) => {
    expect(parseWithSource(`[${serialized},"1.0"]`)).toEqual([Number(serialized), "1.0"]);
  },
);

test("a text in which only strings look odd is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(...odd), (text, look) => {
      const whole = JSON.stringify({ look, quoted: `":${look},`, json: JSON.parse(text) });
      const read = parseWithSource(whole);
      expect(JSON.stringify(read)).toBe(whole);
      expect(Bun.deepEquals(JSON.parse(whole), JSON.parse(JSON.stringify(read)))).toBe(true);
    }),
  );
});

test.each(["", "{", "[1e]", "01", '{"a":1.}', "[1.0", "nothing"])("numbers: %j is no JSON", (text) => {
  expect(parseWithSource(text)).toBeUndefined();
});

test("a member called __proto__ stays a member", () => {
  expect(JSON.stringify(parseWithSource('{"__proto__":{"a":1.0}}'))).toBe('{"__proto__":{"a":1.0}}');
});
