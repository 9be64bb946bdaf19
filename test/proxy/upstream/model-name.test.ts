/** Property: the ids that are nearest to a name. Which model a spelling means: pairs.test.ts. */
import { describe, expect, test } from "bun:test";
import { findModel, nearest } from "../../../src/proxy/upstream/models/model-name";
import fc from "../../support/random";

test("no pattern stands for a name that is too long", () => {
  expect(() => findModel("x".repeat(600), [{ id: "gpt-5-mini" }], { "*": "gpt-5-mini" })).toThrow("There is no model");
});

describe("a long list", () => {
  const long = Array.from({ length: 5000 }, (_, at) => ({
    id: `${["claude", "gpt", "gemini", "grok"][at % 4]}-${"abcdefgh".repeat(at % 7)}-${at}.${at % 10}`,
  }));
  const attempt = (name: string) => {
    try {
      return findModel(name, long, {});
    } catch (thrown) {
      return thrown;
    }
  };

  test("a long list has a name in another spelling", () => {
    expect(attempt("GPT-abcdefgh-3501.1-20250929")).toBe(long[3501]!);
  });

  test.each([
    ["short", "x"],
    ["of many letters", "abcdefgh-".repeat(100_000)],
    ["like all of them", "-.0123456789abcdefgh".repeat(3)],
    ["like one of them", "claude-abcdefghabcdefgh-40000.0"],
  ])("an unknown name that is %s is refused with the nearest", (_, name) => {
    expect(attempt(name)).toMatchObject({ message: expect.stringContaining("The nearest are") });
  });
});

test("the nearest names are those that a full search finds, in its order", () => {
  const lacked = (name: string, other: string) =>
    [...new Set(name.split(/[-.]/))].filter((word) => !other.includes(word)).length;
  const distance = (a: string, b: string): number => {
    if (a === "" || b === "") return a.length + b.length;
    const [rest, other] = [a.slice(1), b.slice(1)];
    if (a[0] === b[0]) return distance(rest, other);
    return 1 + Math.min(distance(rest, b), distance(a, other), distance(rest, other));
  };
  const id = fc.string({ unit: fc.constantFrom(..."abc-4.5"), minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(id, fc.uniqueArray(id, { maxLength: 40 }), (name, ids) => {
      const found = nearest(
        name,
        ids.map((each) => ({ id: each })),
      );
      const farness = (each: string) => 48 * lacked(name, each) + distance(name, each);
      const all = ids.map(farness).sort((a, b) => a - b);
      expect(found.map(farness)).toEqual(all.slice(0, 3));
    }),
  );
});
