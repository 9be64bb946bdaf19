/** Rows: each fixup of schemas by itself, and all of them together on any schema. */
import { expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { allFixups, fitSchema, vendorRow } from "../../src/dialects/hub/tool-schema";
import fc, { triesOf } from "../support/random";

const text = { type: "string" };
const root = (a: unknown) => ({ type: "object", properties: { a } });

test("a property that says of itself that it is required", () => {
  const schema = { type: "object", properties: { a: { ...text, required: true }, b: { ...text, required: false } } };
  expect(fitSchema(schema, ["schema-draft"]).schema).toEqual({
    ...root(text),
    properties: { a: text, b: text },
    required: ["a"],
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
    { numRuns: triesOf(500) },
  );
});
