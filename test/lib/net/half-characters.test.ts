/** Property: JSON without halves of surrogate pairs means what `toWellFormed` makes of each text. */
import { expect, test } from "bun:test";
import { mendHalves, withoutHalves } from "../../../src/lib/net/json/half-characters";
import fc from "../../support/random";

const pieces = [
  "\ud83d",
  "\ude00",
  "\uDFFF",
  "😀",
  "\ud7ff",
  "\ue000",
  "\\",
  "\\\\",
  "u",
  "d83d",
  '"',
  "é",
  "a",
  "\u0010",
];

test("halves of characters become U+FFFD, however they are escaped, and nothing else changes", () => {
  let halves = 0;
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }),
      fc.boolean(),
      fc.boolean(),
      (texts, all, upper) => {
        const text = texts.join("");
        const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
        const plain = JSON.stringify({ [text]: text });
        const lower = all ? plain.replace(/[^ -~]/g, escaped) : plain;
        const capitals = (_: string, start: string, digits: string) => start + digits.toUpperCase();
        const json = upper ? lower.replace(/(?<!\\)((?:\\\\)*\\u)([0-9a-f]{4})/g, capitals) : lower;
        const bytes = Buffer.from(json);
        expect(mendHalves(bytes)).toBe(!text.isWellFormed());
        expect(JSON.parse(bytes.toString())).toEqual({ [text.toWellFormed()]: text.toWellFormed() });
        expect(withoutHalves(json)).toBe(text.isWellFormed() ? json : bytes.toString());
        if (!text.isWellFormed()) halves += 1;
      },
    ),
  );
  expect(halves).toBeGreaterThan(0);
});
