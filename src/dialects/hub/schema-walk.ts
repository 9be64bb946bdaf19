/** Goes through the schemas within a JSON Schema. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { setField } from "./json";
import { mapped } from "./lists";

/** Changes one schema; returns the same object if nothing has to change. */
export type SchemaChange = (schema: JsonObject) => JsonObject;

/** Keywords whose value is a schema or a list of schemas, and those whose value is a map of schemas, of any draft. */
const placesOf = {
  schemas: `allOf anyOf oneOf prefixItems items additionalItems additionalProperties contains propertyNames not if then else
    unevaluatedItems unevaluatedProperties`,
  map: "properties patternProperties $defs definitions dependentSchemas dependencies",
};
const places = new Map(
  (["schemas", "map"] as const).flatMap((kind) => placesOf[kind].split(/\s+/).map((keyword) => [keyword, kind])),
);

/**
 * Changes each schema within a schema, and then itself: the same object if nothing changes. Names of properties are no
 * keywords, whatever they are.
 */
export const mapSchema = (schema: JsonObject, change: SchemaChange): JsonObject =>
  change(mapPlaces(schema, (value) => (isObject(value) ? mapSchema(value, change) : value)));

/** Changes what stands in the places of schemas directly within a schema: objects, booleans, and what is neither. */
export function mapPlaces(schema: JsonObject, change: (value: unknown, keyword: string) => unknown): JsonObject {
  let after = schema;
  for (const keyword in schema) {
    const kind = places.get(keyword);
    if (kind === undefined) continue;
    const value = schema[keyword];
    const each = (inner: unknown) => change(inner, keyword);
    const next = kind === "map" ? mapMembers(value, each) : Array.isArray(value) ? mapped(value, each) : each(value);
    if (next === value) continue;
    if (after === schema) after = { ...schema };
    after[keyword] = next;
  }
  return after;
}

/** The map with its values changed; the same one if none changes, or if it is none. */
function mapMembers(map: unknown, change: (value: unknown) => unknown): unknown {
  if (!isObject(map)) return map;
  let after: JsonObject | undefined;
  for (const name in map) {
    const value = change(map[name]);
    if (value === map[name]) continue;
    after ??= { ...map };
    setField(after, name, value);
  }
  return after ?? map;
}
