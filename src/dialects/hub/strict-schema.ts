/** Whether a schema fits OpenAI's structured outputs. */
import { isObject } from "../../lib/json";

/**
 * Whether `strict: true` accepts the schema: every object requires all its properties and allows no others, and only
 * supported keywords are used (OpenAI's guide to structured outputs, "Supported schemas").
 */
export const isStrict = (schema: unknown): boolean =>
  isObject(schema) && schema.type === "object" && isHeld(schema, openai);

/** The same of what Anthropic's strict tools take, too (its page "Structured outputs", 2026-09): no bounds, patterns or references. */
export const isStrictEverywhere = (schema: unknown): boolean =>
  isObject(schema) && schema.type === "object" && isHeld(schema, anthropic);

const anthropic = new Set(["type", "description", "title", "enum", "const"]);
const openai = new Set([
  ...anthropic,
  ...["$ref", "pattern", "format", "$schema"],
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
]);
const maps = new Set(["properties", "$defs", "definitions"]);

function isHeld(schema: unknown, words: ReadonlySet<string>): boolean {
  if (!isObject(schema)) return false;
  if ((schema.type === "object" || "properties" in schema) && !isClosed(schema)) return false;
  return Object.entries(schema).every(([key, value]) => {
    if (words.has(key) || key === "required" || key === "additionalProperties") return true;
    if (maps.has(key)) return isObject(value) && Object.values(value).every((inner) => isHeld(inner, words));
    if (key === "anyOf") return Array.isArray(value) && value.every((inner) => isHeld(inner, words));
    return key === "items" && isHeld(value, words);
  });
}

function isClosed({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return false;
  return Object.keys(properties).every((name) => required.includes(name));
}
