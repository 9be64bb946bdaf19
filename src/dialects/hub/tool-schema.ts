/**
 * Repairs tool schemas for which upstreams refuse the whole request. Three cases are known:
 *
 * - a `pattern` with Unicode classes (`\p{L}`): OpenAI's endpoints compile patterns, and "… is not a 'regex'"
 *   (BerriAI/litellm#40358);
 * - a union at the root: "input_schema does not support oneOf, allOf, or anyOf at the top level" with Anthropic
 *   (anthropics/claude-code#5319), "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at
 *   the top level" with OpenAI (nspady/google-calendar-mcp#39);
 * - no `type` at the root: "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'".
 */

import { isObject } from "../../json";
import type { Changes } from "./changes";
import type { JsonObject } from "./conversation";
import { without } from "./json";
import { mergeRootUnion } from "./root-union";

/** Each returns the same object if nothing has to change. */
const fixups: Record<SchemaFixup, (schema: JsonObject) => JsonObject> = {
  "schema-pattern": withoutUnicodePatterns,
  "schema-union": mergeRootUnion,
  "schema-type": withRootType,
};

export type SchemaFixup = "schema-pattern" | "schema-union" | "schema-type";

/** What a fixup removes; the other fixups lose nothing. */
const taken: Partial<Record<SchemaFixup, string>> = { "schema-pattern": "pattern", "schema-union": "schema union" };

interface FittedSchema extends Changes {
  /** The same object if there are no fixups. */
  schema: JsonObject;
}

/** @param wanted The fixups to apply, in this order. */
export function fitSchema(schema: JsonObject, wanted: readonly SchemaFixup[]): FittedSchema {
  const fitted: FittedSchema = { schema, fixups: [], dropped: [] };
  for (const name of wanted) {
    const after = fixups[name](fitted.schema);
    if (after === fitted.schema) continue;
    fitted.schema = after;
    fitted.fixups.push(name);
    const lost = taken[name];
    if (lost !== undefined) fitted.dropped.push(lost);
  }
  return fitted;
}

// ── Patterns ──

/** Keywords whose value is a list of schemas, a map of schemas, or a schema. */
const schemaLists = ["allOf", "anyOf", "oneOf", "prefixItems"];
const schemaMaps = ["properties", "$defs", "definitions", "dependentSchemas"];
const schemas = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];

/** Removes the keyword `pattern`, never a property of that name. */
function withoutUnicodePatterns(schema: JsonObject): JsonObject {
  const changed: JsonObject = {};
  const visit = (value: unknown) => (isObject(value) ? withoutUnicodePatterns(value) : value);
  for (const key of [...schemas, ...schemaLists]) {
    const value = schema[key];
    const after = Array.isArray(value) ? sameOr(value, value.map(visit)) : visit(value);
    if (after !== value) changed[key] = after;
  }
  for (const key of schemaMaps) {
    const value = schema[key];
    if (isObject(value)) {
      const after = Object.fromEntries(Object.entries(value).map(([name, item]) => [name, visit(item)]));
      if (Object.entries(value).some(([name, item]) => after[name] !== item)) changed[key] = after;
    }
  }
  const patterns = schema.patternProperties;
  if (isObject(patterns)) {
    const kept = Object.entries(patterns).filter(([pattern]) => !isUnicode(pattern));
    const after = Object.fromEntries(kept.map(([pattern, item]) => [pattern, visit(item)]));
    if (Object.entries(patterns).some(([pattern, item]) => after[pattern] !== item)) changed.patternProperties = after;
  }
  const plain = isUnicode(schema.pattern) ? without(schema, ["pattern"]) : schema;
  return Object.keys(changed).length > 0 ? { ...plain, ...changed } : plain;
}

/** Whether a pattern has `\\p{…}`. A scan from escape to escape: a regular expression takes long for many backslashes. */
function isUnicode(pattern: unknown): boolean {
  if (typeof pattern !== "string") return false;
  for (let at = pattern.indexOf("\\"); at !== -1; at = pattern.indexOf("\\", at + 2))
    if (pattern[at + 2] === "{" && /[pP]/.test(pattern[at + 1]!)) return true;
  return false;
}

const sameOr = (before: unknown[], after: unknown[]): unknown[] =>
  after.every((item, at) => item === before[at]) ? before : after;

// ── Root ──

/** A tool's input is always an object, even if its schema does not say so. */
function withRootType(schema: JsonObject): JsonObject {
  const { type } = schema;
  const mayBeObject = type == null || (Array.isArray(type) && type.includes("object"));
  return mayBeObject ? { ...schema, type: "object" } : schema;
}
