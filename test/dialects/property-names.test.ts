/** Property: names of properties that an upstream refuses, on their way up and back; examples are in `fixtures/pairs/hub/`. */
import { expect, test } from "bun:test";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { MemberRenamer, renameMembers, renameProperties } from "../../src/dialects/hub/property-names";
import fc from "../support/random";

const taken = /^[a-zA-Z0-9_.-]{1,64}$/;
const anyName = fc.string({ maxLength: 70 });

test("whatever the names, each is taken and none is there twice", () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyName, { minLength: 1, maxLength: 12 }), (names) => {
      const properties = Object.fromEntries(names.map((name) => [name, {}]));
      const after = renameProperties({ type: "object", properties }, taken);
      const sent = Object.keys((after?.schema.properties ?? properties) as object);
      expect(sent).toHaveLength(names.length);
      for (const name of sent) expect(name).toMatch(taken);
    }),
  );
});

test("members are renamed at the root alone, however the text is cut, and back", () => {
  const values = fc.oneof(fc.string(), fc.dictionary(anyName, fc.jsonValue()), fc.jsonValue());
  fc.assert(
    fc.property(fc.dictionary(anyName, values), fc.array(fc.nat(20)), fc.nat(3), (object, cuts, indent) => {
      const names = Object.keys(object);
      const sent = new Map(names.map((name, at) => [name, `n${at}`] as const));
      const text = JSON.stringify(object, null, indent);
      const renamer = new MemberRenamer(sent);
      let written = "";
      let rest = text;
      for (const size of cuts) {
        written += renamer.push(rest.slice(0, size));
        rest = rest.slice(size);
      }
      written += renamer.push(rest) + renamer.end();
      expect(JSON.parse(written)).toEqual(
        Object.fromEntries(
          Object.entries(JSON.parse(text) as JsonObject).map(([name, value]) => [sent.get(name)!, value]),
        ),
      );
      expect(renameMembers(written, new Map([...sent].map(([name, other]) => [other, name])))).toBe(text);
    }),
  );
});

test.each(["", "[]", '["a"]', '{"a', '{"a":"b', "null", '"a"', "{]}"])("what is no whole object stays: %s", (text) => {
  expect(renameMembers(text, new Map([["b", "c"]]))).toBe(text);
});
