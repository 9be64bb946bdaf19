/** Property: all fixups of schemas together on any schema. */
import { expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { allFixups, fitSchema, vendorRow } from "../../src/dialects/hub/tool-schema";
import { parseWithSource } from "../../src/lib/json";
import fc, { triesOf } from "../support/random";

test("schemas that differ in a number's digits alone are two", () => {
  const branch = (digits: string) => ({ properties: { a: parseWithSource(`{"maximum":${digits}}`) } });
  const given = { anyOf: [branch("12345678901234567890"), branch("12345678901234567891")] };
  const { schema } = fitSchema(given, vendorRow("responses", "OpenAI").fixups);
  expect(JSON.stringify(schema.properties)).toBe(
    '{"a":{"anyOf":[{"maximum":12345678901234567890},{"maximum":12345678901234567891}]}}',
  );
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
