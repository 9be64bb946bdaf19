/** The schema of a reply for Anthropic's structured outputs, which take a part of JSON Schema only. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { without } from "./json";
import { asNewestDraft, inWords, withoutTuples } from "./schema-fixups";
import { mapPlaces, mapSchema } from "./schema-walk";

/** The wish for JSON where the API cannot be told of it. @param schema Which it has to match; undefined for any. */
export function wishForJson(schema: unknown): string {
  const isOfObject = !isObject(schema) || schema.type === undefined || schema.type === "object";
  const object = `one JSON ${isOfObject ? "object" : "value"}`;
  const which = isObject(schema) ? ` that matches this JSON Schema: ${JSON.stringify(schema)}` : ".";
  return `Answer without a code fence and with nothing but ${object}${which}`;
}

/**
 * The schema as Anthropic takes it, made as its own package does (`transformJSONSchema` of `@anthropic-ai/sdk` 1.12, 2026-11):
 * objects are closed, and bounds and odd formats stand in the description. Its API answers otherwise: "For 'object' type,
 * 'additionalProperties' must be explicitly set to false" and the like.
 * @returns The same object if it is taken as it is. Undefined for what would mean something else: objects whose members have
 * any name, values of any type, schemas that contain themselves.
 */
export function closedSchema(schema: unknown): JsonObject | undefined {
  if (!isObject(schema)) return undefined;
  const plain = withDefinitions(asNewestDraft(schema));
  if (!isSayable(plain)) return undefined;
  if (plain === schema && isTaken(schema)) return schema;
  const tupleless = withoutTuples(without(plain, ["$schema"]));
  return closedWithin(tupleless);
}

// ── What can be said ──

/** `definitions` have the name `$defs` now. */
function withDefinitions(root: JsonObject): JsonObject {
  const { definitions, $defs, ...others } = root;
  if (!isObject(definitions)) return root;
  const moved = { ...others, $defs: { ...definitions, ...(isObject($defs) ? $defs : {}) } };
  return mapSchema(moved, (schema) => {
    const { $ref: reference } = schema;
    if (typeof reference !== "string" || !reference.startsWith("#/definitions/")) return schema;
    return { ...schema, $ref: `#/$defs/${reference.slice("#/definitions/".length)}` };
  });
}

function isSayable(root: JsonObject): boolean {
  let isSo = true;
  mapSchema(root, (schema) => {
    isSo &&= isSayableAlone(schema);
    return schema;
  });
  return isSo && refersForward(root);
}

/** Keywords of which one has to say what a value is. */
const kinds = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"];

function isSayableAlone(schema: JsonObject): boolean {
  if (!kinds.some((keyword) => keyword in schema)) return false;
  if ("patternProperties" in schema) return false;
  const { type, properties, additionalProperties: others, enum: values, const: value, items } = schema;
  if (Array.isArray(values) && values.some((each) => typeof each === "object" && each !== null)) return false;
  if (typeof value === "object" && value !== null) return false;
  const types = [type].flat();
  // A union beside a list of types would be one of unions.
  if (isOfParts(type) && kinds.some((keyword) => keyword !== "type" && keyword in schema)) return false;
  if (types.includes("array") && items === undefined && schema.prefixItems === undefined) return false;
  if (!types.includes("object")) return true;
  if (others === false) return true;
  const isMap = !isObject(properties) || Object.keys(properties).length === 0;
  return others === undefined && !isMap;
}

/** Whether each reference leads to a definition, and none of them back to itself. */
function refersForward(root: JsonObject): boolean {
  const definitions = isObject(root.$defs) ? root.$defs : {};
  const references = (schema: unknown): string[] => {
    const found: string[] = [];
    if (isObject(schema))
      mapSchema(schema, (inner) => {
        if (typeof inner.$ref === "string") found.push(inner.$ref);
        return inner;
      });
    return found;
  };
  const left = new Map<string, string[]>();
  for (const name of Object.keys(definitions)) left.set(`#/$defs/${name}`, references(definitions[name]));
  if (!references(root).every((reference) => left.has(reference))) return false;
  // Definitions to which nothing refers any more are taken away until none is left; those in a circle are.
  const uses = new Map<string, number>();
  for (const reference of [...left.values()].flat()) uses.set(reference, (uses.get(reference) ?? 0) + 1);
  const free = [...left.keys()].filter((name) => !uses.has(name));
  for (let name = free.pop(); name !== undefined; name = free.pop()) {
    for (const reference of left.get(name) ?? []) {
      const count = uses.get(reference)! - 1;
      uses.set(reference, count);
      if (count === 0) free.push(reference);
    }
    left.delete(name);
  }
  return left.size === 0;
}

// ── As Anthropic takes it ──

const formats = new Set([
  ...["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
]);
const ofAll = ["type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "title", "description"];
const ofObjects = ["properties", "required", "additionalProperties"];
const ofLists = ["items", "minItems", "maxItems", "uniqueItems"];

/** Whether Anthropic takes each schema in it, as its documentation says (2026-11): also patterns and defaults. */
function isTaken(root: JsonObject): boolean {
  let isSo = true;
  mapSchema(root, (schema) => {
    const moved = movedOf(schema).filter((keyword) => keyword !== "pattern" && keyword !== "default");
    const isOpen = [schema.type].flat().includes("object") && schema.additionalProperties !== false;
    isSo &&= moved.length === 0 && !isOpen && !("oneOf" in schema);
    return schema;
  });
  return isSo;
}

/** Whether a list of types has one whose values have parts. */
const isOfParts = (type: unknown): type is unknown[] =>
  Array.isArray(type) && type.some((name) => name === "object" || name === "array");

/** The keywords that stand in words. */
function movedOf(schema: JsonObject): string[] {
  const types = [schema.type].flat();
  return Object.keys(schema).filter((keyword) => {
    if (ofAll.includes(keyword) || keyword === "oneOf") return false;
    if (types.includes("object") && ofObjects.includes(keyword)) return false;
    if (keyword === "format") return !types.includes("string") || !formats.has(String(schema.format));
    if (!types.includes("array")) return true;
    return keyword !== "items" && !(keyword === "minItems" && (schema.minItems === 0 || schema.minItems === 1));
  });
}

/** From the outside in: what is said in words of a schema is as the client wrote it. */
const closedWithin = (schema: JsonObject): JsonObject =>
  mapPlaces(closed(schema), (value) => (isObject(value) ? closedWithin(value) : value));

function closed(schema: JsonObject): JsonObject {
  const { $ref: reference, $defs, oneOf, type } = schema;
  // Beside a reference nothing else is read.
  if (reference !== undefined) return { $ref: reference, ...($defs === undefined ? {} : { $defs }) };
  if (Array.isArray(oneOf)) return closed({ ...without(schema, ["oneOf"]), anyOf: schema.anyOf ?? oneOf });
  if (isOfParts(type)) return eachType(schema, type);
  const plain = inWords(schema, movedOf(schema));
  return type === "object" ? { ...plain, additionalProperties: false } : plain;
}

/** One branch for each type of a list. */
function eachType(schema: JsonObject, types: readonly unknown[]): JsonObject {
  const left = without(schema, ["type", ...ofObjects, ...ofLists]);
  const own = (keywords: readonly string[]) =>
    Object.fromEntries(keywords.flatMap((keyword) => (keyword in schema ? [[keyword, schema[keyword]]] : [])));
  const anyOf = [...new Set(types)].map((type) => ({
    type,
    ...(type === "object" ? own(ofObjects) : type === "array" ? own(ofLists) : {}),
  }));
  const whole = { ...left, anyOf };
  return inWords(whole, movedOf(whole));
}
