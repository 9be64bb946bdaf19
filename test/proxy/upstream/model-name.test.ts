/** Rows: the model that a client's spelling means. */
import { describe, expect, test } from "bun:test";
import { findModel, nearest } from "../../../src/proxy/upstream/models/model-name";
import fc from "../../support/random";

const models = [
  "claude-sonnet-4.5",
  "claude-sonnet-4",
  "claude-opus-4.6",
  "claude-opus-4.6-1m",
  "claude-haiku-4.5",
  "gpt-5-mini",
  "gpt-4o-2024-11-20",
  "gemini-3.1-pro-preview",
].map((id) => ({ id }));
const find = (name: string, ...aliases: Record<string, string>[]) => findModel(name, models, ...aliases).id;

describe("spellings that mean a listed model", () => {
  test.each([
    ["claude-sonnet-4.5", "claude-sonnet-4.5"],
    ["Claude-Sonnet-4.5", "claude-sonnet-4.5"],
    ["claude-sonnet-4-5-20250929", "claude-sonnet-4.5"],
    ["claude-sonnet-4-5", "claude-sonnet-4.5"],
    ["claude-4.5-sonnet", "claude-sonnet-4.5"],
    ["claude-4-5-sonnet-latest", "claude-sonnet-4.5"],
    ["claude-sonnet-4-20250514", "claude-sonnet-4"],
    ["claude-4-sonnet", "claude-sonnet-4"],
    ["claude-opus-4-6-1m", "claude-opus-4.6-1m"],
    ["claude-haiku-4-5-20251001", "claude-haiku-4.5"],
    ["GPT-5-mini", "gpt-5-mini"],
  ])("%s is %s", (name, id) => expect(find(name)).toBe(id));

  test("an alias of the owner's, but never over a listed id", () => {
    expect(find("fast", { fast: "gpt-5-mini" })).toBe("gpt-5-mini");
    expect(find("gpt-5-mini", { "gpt-5-mini": "claude-opus-4.6" })).toBe("gpt-5-mini");
    expect(() => find("toString")).toThrow("There is no model");
  });
});

describe("aliases with patterns", () => {
  const patterns = {
    "*": "gpt-5-mini",
    "claude-*": "claude-sonnet-4.5",
    "claude-*-next": "claude-opus-4.6",
    "claude-x": "claude-sonnet-4",
    "*t*h*i*r*d*": "claude-opus-4.6",
    "third-*": "claude-sonnet-4",
  };

  test.each([
    ["anything", "gpt-5-mini"],
    ["claude-y", "claude-sonnet-4.5"],
    ["claude-opus-next", "claude-opus-4.6"],
    ["Claude-Opus-NEXT", "claude-opus-4.6"],
    ["claude-x", "claude-sonnet-4"],
    ["third-x", "claude-sonnet-4"],
    ["claude-haiku-4.5", "claude-haiku-4.5"],
  ])("%s is %s: a model's own name, then the alias of that name, then the pattern with the most letters", (name, id) =>
    expect(find(name, patterns)).toBe(id),
  );

  test("of two tables the first that has one counts, patterns or not", () => {
    expect(find("claude-x", { "claude-*": "gpt-5-mini" }, patterns)).toBe("gpt-5-mini");
    expect(find("other", { "claude-*": "gpt-5-mini" }, patterns)).toBe("gpt-5-mini");
  });

  test("an alias of a model that is not there is no model", () => {
    expect(() => find("fast", { "*": "gone" })).toThrow("There is no model `fast`");
    expect(() => find(`${"x".repeat(600)}`, patterns)).toThrow("There is no model");
  });
});

describe("no silent other model", () => {
  test("an unknown version is refused with the three nearest", () => {
    expect(() => find("claude-sonnet-4.7")).toThrow(/`claude-sonnet-4.5`/);
    expect(() => find("claude-sonnet-9")).toThrow(
      expect.objectContaining({ status: 404, details: { param: "model", code: "model_not_found" } }),
    );
    expect(() => find("gpt-5-mnii")).toThrow(/The nearest are `gpt-5-mini`, `/);
  });

  test("a bracketed suffix is refused, naming the id to use", () => {
    expect(() => find("claude-opus-4-6[1m]")).toThrow(/Use `claude-opus-4.6-1m`/);
    expect(() => find("claude-sonnet-4.5[1m]")).toThrow(/Use `claude-sonnet-4.5`/);
    expect(() => find("x[1m]")).toThrow(expect.objectContaining({ status: 400 }));
  });
});

test.each([
  ["gpt-4o-mini", "gpt-4o-mini-2024-07-18"],
  ["gpt-5-mnii", "gpt-5-mini"],
  ["sonnet", "claude-sonnet-5"],
  ["gemini-pro", "gemini-3.1-pro-preview"],
  ["claude-9", "claude-sonnet-5"],
])("of all ids the one that has the most words of %s is the nearest: %s", (name, first) => {
  const ids = ["auto", "gpt-5.5", "gpt-5-mini", "gpt-4o-mini-2024-07-18", "claude-sonnet-5", "gemini-3.1-pro-preview"];
  const found = nearest(
    name,
    ids.map((id) => ({ id })),
  );
  expect(found[0]).toBe(first);
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
