/** Rows: the schema of a reply as Anthropic takes it, beside what its own package makes of the same schema. */
import { describe, expect, test } from "bun:test";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { closedSchema } from "../../src/dialects/hub/output-schema";
import { withoutTuples } from "../../src/dialects/hub/schema-fixups";

const text = { type: "string" };
const person = (more: JsonObject = {}) => ({ type: "object", properties: { name: text }, required: ["name"], ...more });

describe("is converted as Anthropic's package does", () => {
  const cases: Record<string, JsonObject> = {
    "an open object": person(),
    bounds: person({ properties: { age: { type: "integer", description: "In years", minimum: 0, maximum: 150 } } }),
    "lengths and patterns": person({ properties: { name: { type: "string", minLength: 2, pattern: "^a" } } }),
    "odd formats": person({
      properties: { a: { type: "integer", format: "int32" }, b: { type: "string", format: "uri" } },
    }),
    lists: person({ properties: { a: { type: "array", items: person(), maxItems: 4, minItems: 2 } } }),
    "one of several": person({ properties: { a: { oneOf: [text, person({ title: "Other" })] } } }),
    definitions: person({
      properties: { a: { $ref: "#/$defs/A", description: "One." } },
      $defs: { A: person({ properties: { n: { type: "number", multipleOf: 2 } } }) },
    }),
    "a reference at the root": { $ref: "#/$defs/A", $defs: { A: person() } },
    "what no structured output enforces": person({ properties: { a: { type: "string", not: { const: "b" } } } }),
  };
  test.each(Object.entries(cases))("%s", (_, schema) => {
    const before = structuredClone(schema);
    expect(closedSchema(schema)).toEqual(transformJSONSchema(schema as never) as JsonObject);
    expect(schema).toEqual(before);
  });
});

test("one that is taken stays the same object", () => {
  const closed = person({
    additionalProperties: false,
    properties: { a: { type: ["string", "null"], enum: ["b", null] } },
  });
  expect(closedSchema(closed)).toBe(closed);
});

test("Google's own words, older names and lists of types are taken first", () => {
  const schema = {
    type: "OBJECT",
    properties: { a: { type: "INTEGER", format: "int32", nullable: true }, b: { $ref: "#/definitions/B" } },
    definitions: { B: { type: ["object", "null"], properties: { c: text } } },
  };
  expect(closedSchema(schema)).toEqual({
    type: "object",
    properties: { a: { type: ["integer", "null"], description: '{format: "int32"}' }, b: { $ref: "#/$defs/B" } },
    additionalProperties: false,
    $defs: {
      B: { anyOf: [{ type: "object", properties: { c: text }, additionalProperties: false }, { type: "null" }] },
    },
  });
});

test("the order of a tuple stands in words, and its length in a number", () => {
  for (const [more, maxItems] of [
    [{}, undefined],
    [{ items: false }, 2],
    [{ items: false, maxItems: 1 }, 1],
    [{ items: false, maxItems: 5 }, 2],
    [{ maxItems: 5 }, 5],
  ] as const)
    expect(withoutTuples({ prefixItems: [text, text], ...more })).toMatchObject({
      items: text,
      ...(maxItems && { maxItems }),
    });
  const pair = { type: "array", prefixItems: [text, { type: "number" }], items: false };
  expect(closedSchema(person({ properties: { pair } }))).toMatchObject({
    properties: {
      pair: { items: { anyOf: [text, { type: "number" }] }, description: expect.stringContaining("string; number") },
    },
  });
});

describe("is said in words where it would mean something else", () => {
  const cases: Record<string, unknown> = {
    "no schema": undefined,
    "a map": person({ properties: { a: { type: "object", additionalProperties: text } } }),
    "an object of any members": person({ properties: { a: { type: "object" } } }),
    "an object that is open on purpose": person({ additionalProperties: true }),
    "names by a pattern": person({ patternProperties: { "^x": text } }),
    "any value": person({ properties: { a: {} } }),
    "a list of anything": person({ properties: { a: { type: "array" } } }),
    "a schema in itself": person({ properties: { more: { $ref: "#" } } }),
    "definitions in a circle": person({
      properties: { a: { $ref: "#/$defs/A" } },
      $defs: { A: person({ properties: { b: { $ref: "#/$defs/B" } } }), B: { anyOf: [text, { $ref: "#/$defs/A" }] } },
    }),
    "a reference to nowhere": person({ properties: { a: { $ref: "#/$defs/A" } } }),
    "values that are objects": person({ properties: { a: { enum: [{}] } } }),
  };
  test.each(Object.entries(cases))("%s", (_, schema) => {
    expect(closedSchema(schema)).toBeUndefined();
  });
});
