/** Whether a schema fits OpenAI's structured outputs. */
import { isObject } from "../../json";

/**
 * Whether `strict: true` accepts the schema: every object requires all its properties and allows no others, and only
 * supported keywords are used (OpenAI's guide to structured outputs, "Supported schemas").
 */
export const isStrict = (schema: unknown): boolean => isObject(schema) && schema.type === "object" && isHeld(schema);

const plain = new Set(["type", "description", "title", "enum", "const", "$ref", "pattern", "format", "$schema"]);
const bounds = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
]);
const maps = new Set(["properties", "$defs", "definitions"]);

function isHeld(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  if ((schema.type === "object" || "properties" in schema) && !isClosed(schema)) return false;
  return Object.entries(schema).every(([key, value]) => {
    if (plain.has(key) || bounds.has(key) || key === "required" || key === "additionalProperties") return true;
    if (maps.has(key)) return isObject(value) && Object.values(value).every(isHeld);
    if (key === "anyOf") return Array.isArray(value) && value.every(isHeld);
    return key === "items" && isHeld(value);
  });
}

function isClosed({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return false;
  return Object.keys(properties).every((name) => required.includes(name));
}
