/** Property: a JSON text with some members changed, and every other byte as it was. */
import { expect, test } from "bun:test";
import { editedTo, editMembers } from "../../../src/lib/net/json/json-edit";
import fc, { openChance, triesOf } from "../../support/random";

test("a member is set and the digits of all others stay", () => {
  const text = `{ "model" : "a", "seed": 9007199254740993, "x": 1.0e2 , "big":{"deep":["}",{"model":"b"}]} }`;
  expect(editMembers(text, { model: "z" }, [])).toBe(
    `{ "model" : "z", "seed": 9007199254740993, "x": 1.0e2 , "big":{"deep":["}",{"model":"b"}]} }`,
  );
});

test("a new member comes last, and an empty object takes one", () => {
  expect(editMembers(`{"a":1}`, { b: [2] }, [])).toBe(`{"a":1,"b":[2]}`);
  expect(editMembers(` { } `, { b: 2 }, [])).toBe(` {"b":2 } `);
});

test("the edit of a member that is written twice sets the one that counts, and can remove both", () => {
  expect(JSON.parse(editMembers(`{"a":1,"b":2,"a":3}`, { a: 4 }, []))).toEqual({ a: 4, b: 2 });
  // The first one goes: some parsers would take it.
  expect(editMembers(`{"a":1,"b":2,"a":3}`, { a: 4 }, [])).toBe(`{"b":2,"a":4}`);
  expect(editMembers(`{"a":1,"b":2,"a":3}`, {}, ["a"])).toBe(`{"b":2}`);
});

test("an edit of an object means what it says, whatever the object holds and however it is spaced", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.dictionary(fc.constantFrom("model", "stream", 'quo"te', "__proto__x"), fc.jsonValue()),
      fc.array(fc.constantFrom("model", "temperature", "top_p")),
      fc.constantFrom(undefined, 1, "\t"),
      (object, set, remove, space) => {
        const removed = remove.filter((key) => !(key in set));
        const expected = Object.entries(object).filter(([key]) => !(removed as string[]).includes(key));
        const edited = JSON.parse(editMembers(JSON.stringify(object, null, space), set, removed));
        const plain = JSON.parse(JSON.stringify({ ...Object.fromEntries(expected), ...set }));
        expect(edited).toEqual(plain);
      },
    ),
  );
});

test("a member that goes from a spaced text leaves no empty line, and one that is set keeps its blanks", () => {
  const text = `{\n "a": 1,\n "b": 2,\n "c" : 3 \n}`;
  expect(editedTo(text, { a: 1, b: 2, c: 3 }, { a: 1, c: 4 })).toBe(`{\n "a": 1,"c" : 4 \n}`);
});

test("a value deep inside is changed, and every other byte stays", () => {
  const text = ` { "a" : [ {"b":"a\\u0041", "n": 1.50, "c" : "old"} , 2e3 ],\n"d":{ "e":1 , "f":"\\/" } } `;
  const before = JSON.parse(text);
  const after = { ...before, a: [{ ...before.a[0], c: "new" }, before.a[1]], d: before.d };
  expect(editedTo(text, before, after)).toBe(text.replace("old", "new"));
  expect(editedTo('{"a":1,"b":2,"c":3.0}', { a: 1, b: 2, c: 3 }, { c: 3 })).toBe('{"c":3.0}');
});

test("a whole in which members were set, added and removed at any depth reads as what it was changed to", () => {
  const { pick, maybe, below } = openChance("json-edit");
  const name = () => pick("a", "b", "c", "model", "copilot_usage", "1", "z/", "ä");
  const object = (depth: number) =>
    Object.fromEntries(Array.from({ length: below(6) }, () => [name(), value(depth - 1)]));
  const value = (depth: number): unknown => {
    if (depth <= 0 || maybe(0.4)) return pick<unknown>(1, "a", "model", 'b":', null, "\\u0061", 'x","a":1}');
    return maybe(0.5) ? object(depth) : Array.from({ length: below(3) }, () => value(depth - 1));
  };
  const changed = (json: unknown): unknown => {
    if (Array.isArray(json)) return maybe(0.1) ? [...json, 1] : json.map((item) => changed(item));
    if (typeof json !== "object" || json === null) return maybe(0.1) ? pick<unknown>("new", 2) : json;
    const kept = Object.entries(json).filter(() => maybe(0.8));
    return {
      ...Object.fromEntries(kept.map(([key, inner]) => [key, changed(inner)])),
      ...(maybe(0.3) ? object(1) : {}),
    };
  };
  const write = (json: unknown) => {
    const spaced = JSON.stringify(json, null, 1);
    const inOneLine = spaced.replace(/\n */g, " ");
    const asInPython = inOneLine.replace(/(?<=[[{]) | (?=[\]}])/g, "");
    return pick(JSON.stringify(json), spaced, inOneLine, asInPython).replace(
      '"model":',
      pick('"model":', '"mod\\u0065l":'),
    );
  };
  for (let round = 0; round < triesOf(3_000); round++) {
    const text = write(object(3));
    const before = JSON.parse(text);
    const after = changed(before) as Record<string, unknown>;
    const edited = editedTo(text, before, after);
    expect({ text, after: JSON.parse(edited) }).toEqual({ text, after });
  }
});

test("a member is not confused with texts and inner members that look like it", () => {
  const word = fc.constantFrom("model", 'model":"a', "a", "\\model", "model\\", '"model"', "", 1, null);
  const inner = fc.dictionary(fc.constantFrom("model", "a", 'a"model'), word);
  const value = fc.oneof(word, inner, fc.array(inner, { maxLength: 2 }));
  const escaped = (text: string) => text.replace('"model"', '"mod\\u0065l"');
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom("model", "a", "b"), value, { minKeys: 1 }),
      fc.constantFrom(undefined, 1),
      fc.boolean(),
      (before, space, isEscaped) => {
        const written = JSON.stringify(before, null, space);
        const text = isEscaped ? escaped(written) : written;
        const given = JSON.parse(text);
        for (const after of [
          { ...given, model: "b" },
          { ...given, a: 2, c: "model" },
        ])
          expect(JSON.parse(editedTo(text, given, after))).toEqual(after);
      },
    ),
    { numRuns: triesOf(500) },
  );
  const twice = '{"model":"a","mod\\u0065l":"a"}';
  expect(JSON.parse(editedTo(twice, JSON.parse(twice), { model: "b" }))).toEqual({ model: "b" });
});
