/**
 * Google's `Schema`, a subset of OpenAPI 3.0, as JSON Schema: types in upper case, `nullable`, and 64-bit integers as
 * strings (https://ai.google.dev/api/caching#Schema).
 */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { setField } from "../hub/json";
import { asNumber, fieldsIn } from "./fields";

/** Numbers that protobuf's JSON may write as texts; integers of 64 bits it always does. */
const numbers = new Set([
  ...["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum"],
]);
const textLists = new Set(["required", "enum"]);
const schemaMaps = new Set(["properties", "defs", "$defs", "definitions"]);
const schemaLists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const schemas = new Set(["items", "additionalProperties", "not"]);

/** Written in another form, or without a meaning for a model of another vendor. */
const notCopied = new Set(["type", "nullable", "propertyOrdering", "example"]);

/**
 * @param closed Objects have no properties but those listed: Google generates no others, and upstreams that hold a reply
 * to a schema want it written.
 */
export function jsonSchemaOf(value: unknown, closed = false): unknown {
  if (!isObject(value)) return value;
  const google = fieldsIn(value);
  const visit = (inner: unknown) => jsonSchemaOf(inner, closed);
  const schema: JsonObject = {};
  const type = typeOf(google.type);
  if (type !== undefined) schema.type = google.nullable === true ? withNull(type) : type;
  for (const [key, member] of Object.entries(google)) {
    if (member == null || notCopied.has(key) || (key === "format" && member === "enum")) continue;
    if (schemaMaps.has(key)) schema[key] = mapOf(member, ordered(google.propertyOrdering), visit);
    else if (schemaLists.has(key))
      schema[key] = Array.isArray(member) ? member.map(visit) : isObject(member) ? [visit(member)] : member;
    else if (schemas.has(key)) schema[key] = visit(member);
    else if (textLists.has(key) && typeof member === "string") schema[key] = [member];
    else setField(schema, key, numbers.has(key) ? asNumber(member) : member);
  }
  if (google.nullable === true) allowNull(schema);
  if (google.example != null) schema.examples = [google.example];
  if (closed && isObject(schema.properties)) schema.additionalProperties ??= false;
  return schema;
}

function typeOf(type: unknown): unknown {
  if (Array.isArray(type)) return type.map(typeOf);
  if (typeof type !== "string") return undefined;
  return type === "TYPE_UNSPECIFIED" ? undefined : type.toLowerCase();
}

const withNull = (type: unknown): unknown[] => [...new Set([...(Array.isArray(type) ? type : [type]), "null"])];

/** Adds null to a schema that has no type, or that lists its values. */
function allowNull(schema: JsonObject): void {
  if (Array.isArray(schema.anyOf)) schema.anyOf = [...schema.anyOf, { type: "null" }];
  if (Array.isArray(schema.enum)) schema.enum = [...schema.enum, null];
}

const ordered = (names: unknown): string[] =>
  Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];

/** The schemas of properties, those of the list first, in its order. */
function mapOf(value: unknown, first: string[], visit: (schema: unknown) => unknown): unknown {
  if (!isObject(value)) return value;
  const map: JsonObject = {};
  for (const name of new Set([...first.filter((name) => Object.hasOwn(value, name)), ...Object.keys(value)]))
    setField(map, name, visit(value[name]));
  return map;
}
