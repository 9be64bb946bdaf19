import { expect, test } from "bun:test";
import { editedTo, editMembers } from "../../src/net/json/json-edit";
import fc from "../support/random";

test("a member is set and the digits of all others stay", () => {
  const text = `{ "model" : "a", "seed": 9007199254740993, "x": 1.0e2 , "big":{"deep":["}",{"model":"b"}]} }`;
  expect(editMembers(text, { model: "z" }, [])).toBe(
    `{"model" : "z","seed": 9007199254740993,"x": 1.0e2,"big":{"deep":["}",{"model":"b"}]}}`,
  );
});

test("a new member comes last, and an empty object takes one", () => {
  expect(editMembers(`{"a":1}`, { b: [2] }, [])).toBe(`{"a":1,"b":[2]}`);
  expect(editMembers(` { } `, { b: 2 }, [])).toBe(`{"b":2}`);
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

test("a value deep inside is changed, and every other byte stays", () => {
  const text = ` { "a" : [ {"b":"a\\u0041", "n": 1.50, "c" : "old"} , 2e3 ],\n"d":{ "e":1 , "f":"\\/" } } `;
  const before = JSON.parse(text);
  const after = { ...before, a: [{ ...before.a[0], c: "new" }, before.a[1]], d: before.d };
  expect(editedTo(text, before, after)).toBe(text.replace("old", "new"));
});

test("a whole that was changed anywhere reads as what it was changed to", () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  const changed = (json: unknown): fc.Arbitrary<unknown> =>
    fc.oneof(
      fc.constant(json),
      value,
      ...(Array.isArray(json) && json.length > 0
        ? [fc.nat(json.length - 1).chain((at) => changed(json[at]).map((to) => json.with(at, to)))]
        : []),
    );
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), value, { minKeys: 1 }).chain((before) =>
        fc.tuple(fc.constantFrom(...Object.keys(before)), fc.constantFrom(null, 1, "\t")).chain(([key, space]) =>
          fc
            .oneof(
              changed(before[key]).map((to) => ({ ...before, [key]: to })),
              fc.constant({ ...before, added: 1 }),
            )
            .map((after) => ({ before, after, text: JSON.stringify(before, null, space ?? undefined) })),
        ),
      ),
      ({ before, after, text }) => {
        expect(JSON.parse(editedTo(text, before, after))).toEqual(JSON.parse(JSON.stringify(after)));
      },
    ),
  );
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
    { numRuns: 500 },
  );
  const twice = '{"model":"a","mod\\u0065l":"a"}';
  expect(JSON.parse(editedTo(twice, JSON.parse(twice), { model: "b" }))).toEqual({ model: "b" });
});
