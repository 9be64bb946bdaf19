/** Property: differences of texts, shown as `diff -u` would. */
import { describe, expect, test } from "bun:test";
import { unifiedDiff } from "../../src/clients/settings-file/diff";
import fc, { triesOf } from "../support/random";

const lines = fc.array(fc.constantFrom("a", "b", "c", "d", "e"), { maxLength: 30 });
const asText = (each: string[]) => each.map((line) => `${line}\n`).join("");

/** As `patch` does it, but that nothing is forgiven. */
function patched(before: string[], diff: string[]): string[] {
  const after: string[] = [];
  let at = 0;
  let counts = [0, 0];
  for (const line of diff) {
    const numbers = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(line)?.slice(1).map(Number);
    if (numbers) {
      expect(counts).toEqual([0, 0]);
      const [old, oldCount, fresh, freshCount] = numbers as [number, number, number, number];
      const start = oldCount === 0 ? old : old - 1;
      after.push(...before.slice(at, start));
      expect(after).toHaveLength(freshCount === 0 ? fresh : fresh - 1);
      at = start;
      counts = [oldCount, freshCount];
      continue;
    }
    const [mark, text] = [line[0], line.slice(1)];
    if (mark !== "+") expect(before[at++]).toBe(text);
    if (mark !== "-") after.push(text);
    counts = [counts[0]! - (mark === "+" ? 0 : 1), counts[1]! - (mark === "-" ? 0 : 1)];
  }
  expect(counts).toEqual([0, 0]);
  return [...after, ...before.slice(at)];
}

describe("a difference", () => {
  test("leads from the one to the other, by its own line numbers", () => {
    fc.assert(
      fc.property(lines, lines, (one, other) => {
        const diff = unifiedDiff(asText(one), asText(other), "file");
        if (asText(one) === asText(other)) expect(diff).toEqual([]);
        expect(patched(one, diff.slice(2))).toEqual(other);
      }),
      { numRuns: triesOf(500) },
    );
  });

  test("a difference shows three lines around, and apart what is apart", () => {
    const before = Array.from({ length: 30 }, (_, at) => `${at}`);
    const after = before.with(4, "four").with(25, "more");
    expect(unifiedDiff(asText(before), asText(after), "f").filter((line) => line.startsWith("@@"))).toEqual([
      "@@ -2,7 +2,7 @@",
      "@@ -23,7 +23,7 @@",
    ]);
  });
});
