/** Rows: names of properties that an upstream refuses, on their way up and back. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { codecs } from "../../src/dialects/codecs";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { hasRefusedName, MemberRenamer, renameMembers, renameProperties } from "../../src/dialects/hub/property-names";
import { adapt } from "../support/adapt";

const taken = /^[a-zA-Z0-9_.-]{1,64}$/;
const rename = (properties: JsonObject, more: JsonObject = {}) =>
  renameProperties({ type: "object", properties, ...more }, taken);

test("names get signs that are taken, each another one, and stay what they are in the description", () => {
  const long = "x".repeat(70);
  const { schema, renamed } = rename(
    {
      filter_name: {},
      "filter[name]": { type: "string" },
      "filter(name)": { description: "Who" },
      [long]: {},
      "[]": {},
      $top: {},
    },
    { required: ["filter[name]", "filter_name"], dependentRequired: { "filter[name]": ["$top"] } },
  )!;
  expect([...renamed]).toEqual([
    ["filter[name]", "filter_name_2"],
    ["filter(name)", "filter_name_3"],
    [long, "x".repeat(64)],
    ["[]", "property"],
    ["$top", "top"],
  ]);
  expect(schema).toMatchObject({
    properties: {
      filter_name_2: { type: "string", description: "Its full name is `filter[name]`." },
      filter_name_3: { description: "Who. Its full name is `filter(name)`." },
    },
    required: ["filter_name_2", "filter_name"],
    dependentRequired: { filter_name_2: ["top"] },
  });
});

test("names that are all taken need nothing", () => {
  expect(rename({ "a.b-c_1": {} })).toBeUndefined();
});

test("names below the root are taken whatever they are, but for those that a union brings up to it", () => {
  const odd = { type: "object", properties: { "a[]": {} }, required: ["a[]"] };
  const below = { a: odd, list: { type: "array", items: odd }, either: { anyOf: [odd, { $ref: "#/$defs/A" }] } };
  expect(rename(below, { $defs: { A: odd } })).toBeUndefined();
  expect(rename({ ...below, "b[]": odd })!.schema.properties).toEqual({
    ...below,
    b: { ...odd, description: "Its full name is `b[]`." },
  });
  expect(hasRefusedName({ type: "object", properties: below, $defs: { A: odd } }, taken)).toBe(false);
  expect(hasRefusedName({ anyOf: [{ $ref: "#/$defs/A" }], $defs: { A: odd } }, taken)).toBe(true);
});

const anyName = fc.string({ maxLength: 70 });

test("whatever the names, each is taken and none is there twice", () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyName, { minLength: 1, maxLength: 12 }), (names) => {
      const after = rename(Object.fromEntries(names.map((name) => [name, {}])));
      const sent = Object.keys(
        (after?.schema.properties ?? Object.fromEntries(names.map((name) => [name, 1]))) as object,
      );
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

test("a call of an earlier turn has the names of the schema, to Claude only", () => {
  const conversation = codecs.chat.decodeRequest({
    model: "m",
    tools: [
      { type: "function", function: { name: "f", parameters: { type: "object", properties: { "a[b]": {} } } } },
      { type: "function", function: { name: "g", parameters: { type: "object", properties: { a: {} } } } },
    ],
    messages: [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        tool_calls: ["f", "g"].map((name) => ({
          id: name,
          type: "function",
          function: { name, arguments: '{"a[b]": 1}' },
        })),
      },
      ...["f", "g"].map((id) => ({ role: "tool", tool_call_id: id, content: "x" })),
    ],
  });
  const inputs = (dialect: "messages" | "chat", vendor: string) =>
    adapt(conversation, dialect, vendor).conversation.turns.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.kind === "tool-call" ? [part.input] : [])),
    );
  expect(inputs("messages", "Anthropic")).toEqual(['{"a_b": 1}', '{"a[b]": 1}']);
  expect(inputs("chat", "Anthropic")).toEqual(['{"a_b": 1}', '{"a[b]": 1}']);
  expect(inputs("chat", "Google")).toEqual(['{"a[b]": 1}', '{"a[b]": 1}']);
});
