/** Rows: each fixup of schemas by itself, and all of them together on any schema. */
import { describe, expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import fc from "fast-check";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { allFixups, fitSchema, type SchemaFixup, vendorRow } from "../../src/dialects/hub/tool-schema";

const [text, number] = [{ type: "string" }, { type: "number" }];
const root = (a: unknown) => ({ type: "object", properties: { a } });
/** What becomes of a property. */
const fixed = (name: SchemaFixup, a: unknown) => (fitSchema(root(a), [name]).schema.properties as JsonObject).a;

const cases: [SchemaFixup, string, unknown, unknown][] = [
  [
    "schema-draft",
    "a list as items",
    { items: [text, number], additionalItems: false },
    { prefixItems: [text, number], items: false },
  ],
  [
    "schema-draft",
    "bounds as booleans",
    { minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: false },
    { exclusiveMinimum: 1, maximum: 3 },
  ],
  [
    "schema-draft",
    "nullable",
    { type: "string", nullable: true, enum: ["a"] },
    { type: ["string", "null"], enum: ["a", null] },
  ],
  ["schema-draft", "nullable without a type", { anyOf: [text], nullable: true }, { anyOf: [text, { type: "null" }] }],
  ["schema-draft", "other words for types", { type: "STRING" }, text],
  ["schema-draft", "words of programming languages", { type: ["int", "dict"] }, { type: ["integer", "object"] }],
  ["schema-draft", "any", { type: "any" }, {}],
  [
    "schema-draft",
    "keywords that are null",
    { type: "string", description: null, enum: [], default: null },
    { type: "string", default: null },
  ],
  ["schema-boolean", "true", true, {}],
  ["schema-boolean", "false", false, { description: "Never given." }],
  ["schema-boolean", "items", { type: "array", items: true }, { type: "array", items: {} }],
  [
    "schema-pattern",
    "names by a pattern",
    { patternProperties: { "(?=a)": text, "^b": text } },
    { patternProperties: { "^b": text }, description: 'Names of further properties match "(?=a)".' },
  ],
  [
    "schema-null",
    "a type or null",
    { type: ["string", "null"], description: "A note" },
    { type: "string", description: "A note. May be null." },
  ],
  [
    "schema-null",
    "a schema or null",
    { anyOf: [{ type: "string", description: "B" }, { type: "null" }], description: "A" },
    { type: "string", description: "A. B. May be null." },
  ],
  [
    "schema-null",
    "several or null",
    { anyOf: [text, number, { type: "null" }] },
    { anyOf: [text, number], description: "May be null." },
  ],
  [
    "schema-null",
    "a branch that says what is said",
    { type: "string", oneOf: [{ type: "string", minLength: 1 }, { type: "null" }] },
    { type: "string", oneOf: [{ type: "string", minLength: 1 }], description: "May be null." },
  ],
  [
    "schema-types",
    "several types",
    { type: ["number", "string"] },
    { type: "number", description: "May also be of type string." },
  ],
  ["schema-types", "null first", { type: ["null", "string"] }, text],
  ["schema-types", "a list without its items", { type: ["array", "string"] }, text],
  [
    "schema-types",
    "a list with them",
    { type: ["array", "string"], items: text },
    { type: "array", items: text, description: "May also be of type string." },
  ],
  [
    "schema-types",
    "an object that comes later",
    { type: ["string", "object"], properties: {} },
    { type: "string", description: "May also be of type object." },
  ],
  ["schema-enum", "numbers", { type: "integer", enum: [1, 2] }, { type: "integer", description: "One of: 1, 2." }],
  ["schema-enum", "one number", { type: "number", const: 1 }, { type: "number", description: "Always 1." }],
  ["schema-enum", "booleans and texts", { enum: [true, "a"] }, { description: 'One of: true, "a".' }],
  [
    "schema-enum",
    "texts and null",
    { type: "string", enum: ["a", null] },
    { type: "string", enum: ["a"], description: "May be null." },
  ],
  [
    "schema-tuple",
    "a tuple",
    { type: "array", prefixItems: [text, { ...number, description: "Size" }], items: false },
    {
      type: "array",
      maxItems: 2,
      items: { anyOf: [text, { ...number, description: "Size" }] },
      description: "2 items, in this order: string; number (Size).",
    },
  ],
  [
    "schema-tuple",
    "a tuple of one kind that goes on",
    { type: "array", prefixItems: [text, text], items: number },
    {
      type: "array",
      items: { anyOf: [text, number] },
      description: "The first 2 items are, in this order: string; string.",
    },
  ],
  ["schema-items", "a list without items", { type: "array" }, { type: "array", items: {} }],
  [
    "schema-item-types",
    "a list without items",
    { type: "array" },
    { type: "array", items: { type: "string", description: "Any value, as JSON." } },
  ],
  [
    "schema-item-types",
    "items of any type",
    { type: "array", items: { description: "Things" } },
    { type: "array", items: { type: "string", description: "Things. Any value, as JSON." } },
  ],
];

test.each(cases)("%s: %s", (name, _, before, after) => {
  const kept = structuredClone(before);
  expect(fixed(name, before)).toEqual(after);
  expect(before).toEqual(kept);
});

test("a property that says of itself that it is required", () => {
  const schema = { type: "object", properties: { a: { ...text, required: true }, b: { ...text, required: false } } };
  expect(fitSchema(schema, ["schema-draft"]).schema).toEqual({
    ...root(text),
    properties: { a: text, b: text },
    required: ["a"],
  });
});

describe("stay the same object", () => {
  test.each<[SchemaFixup, unknown]>([
    ["schema-draft", { type: "array", prefixItems: [text], items: false, enum: [null], const: null }],
    ["schema-boolean", { type: "object", additionalProperties: false }],
    ["schema-boolean", { prefixItems: [text], items: false }],
    ["schema-null", { type: "null" }],
    ["schema-null", { anyOf: [text, number] }],
    ["schema-enum", { enum: ["a"], type: "string" }],
    ["schema-types", { properties: { type: { properties: {} } } }],
    ["schema-item-types", { type: "array", items: { $ref: "#/$defs/A" } }],
  ])("%s: %p", (name, schema) => {
    expect(fixed(name, schema)).toBe(schema as JsonObject);
  });
});

// ── Any schema ──

const names = fc.constantFrom("string", "number", "integer", "boolean", "null", "object", "array");
const kinds = fc.oneof(names, fc.uniqueArray(names, { minLength: 1, maxLength: 3 }));

/** @param depth How many levels of others it may have. */
function schemasOf(depth: number): fc.Arbitrary<JsonObject> {
  const flat = {
    type: kinds,
    enum: fc.array(fc.constantFrom("a", "b", 1, 2, true, null), { minLength: 1, maxLength: 3 }),
    pattern: fc.constantFrom("^a", "(?!a)", "\\p{L}"),
    required: fc.uniqueArray(fc.constantFrom("a", "type"), { maxLength: 2 }),
    description: fc.constantFrom("", "A", "B."),
    minItems: fc.nat(3),
  };
  if (depth === 0) return fc.record(flat, { requiredKeys: [] });
  const inner = schemasOf(depth - 1);
  const nested = {
    properties: fc.dictionary(fc.constantFrom("a", "type", "filter[a]"), inner, { maxKeys: 2 }),
    items: fc.oneof(inner, fc.boolean()),
    prefixItems: fc.array(inner, { minLength: 1, maxLength: 2 }),
    anyOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
  };
  return fc.record({ ...flat, ...nested }, { requiredKeys: [] });
}

test("any schema is of the newest draft after all fixups, and needs none of them again", () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  fc.assert(
    fc.property(schemasOf(2), (schema) => {
      const whole = { ...schema, type: "object" };
      const before = JSON.stringify(whole);
      const fitted = fitSchema(whole, allFixups).schema;
      expect(JSON.stringify(whole)).toBe(before);
      expect(ajv.validateSchema(fitted)).toBe(true);
      for (const list of [allFixups, vendorRow("responses", "OpenAI").fixups, vendorRow("chat", "Google").fixups]) {
        const once = fitSchema(whole, list).schema;
        expect(fitSchema(once, list).schema).toBe(once);
      }
    }),
    { numRuns: 500 },
  );
});
