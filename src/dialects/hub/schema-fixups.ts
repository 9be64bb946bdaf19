/**
 * What is changed in a schema for vendors that refuse a part of JSON Schema with the whole request. Each fixup is a pure
 * function whose work grows with the schema, and returns the same object if nothing has to change. What a schema cannot say
 * any more stands in its description, where models read it. `tool-schema.ts` says which vendor needs which.
 */
import { withFullStop } from "../../lib/format";
import { entryOf, isObject, isSameJson, numberIn } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { without } from "./json";
import { mapPlaces, mapSchema, type SchemaChange } from "./schema-walk";

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The schema with a sentence at the end of its description. */
export function said(schema: JsonObject, sentence: string): JsonObject {
  const description = textOf(schema.description).trim();
  if (description.includes(sentence)) return schema;
  return { ...schema, description: description === "" ? sentence : `${withFullStop(description)} ${sentence}` };
}

/** The schema without these keywords, which its description has as JSON: `{pattern: "^a"}`, as Anthropic's SDK writes it. */
export function inWords(schema: JsonObject, keywords: readonly string[]): JsonObject {
  const moved = keywords.filter((keyword) => Object.hasOwn(schema, keyword));
  if (moved.length === 0) return schema;
  const words = moved.map((keyword) => `${keyword}: ${JSON.stringify(schema[keyword])}`).join(", ");
  const description = textOf(schema.description);
  return { ...without(schema, moved), description: `${description === "" ? "" : `${description}\n\n`}{${words}}` };
}

// ── Older drafts ──

/** What some clients write for a type: Google's own words, and those of programming languages. */
const typeNames: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["string", "number", "integer", "boolean", "object", "array", "null"].map((name) => [name, name]),
  ),
  str: "string",
  int: "integer",
  float: "number",
  double: "number",
  bool: "boolean",
  dict: "object",
  list: "array",
};

/**
 * Forms of older drafts and of OpenAPI in those of the draft 2020-12, which says the same: Anthropic's answer is
 * "JSON schema is invalid. It must match JSON Schema draft 2020-12" (seen 2026-02), OpenAI's "[{…}] is not of type 'object',
 * 'boolean'", "True is not of type 'number'" and "None is not of type 'string'".
 */
export function asNewestDraft(schema: JsonObject): JsonObject {
  const after = mapSchema(schema, newestForm);
  return after === schema ? schema : without(after, ["$schema"]);
}

/** The name of the draft, which some hosts refuse as an unknown field: "input_schema.$schema: Extra inputs are not permitted". */
export const withoutDialect = (schema: JsonObject): JsonObject => without(schema, ["$schema"]);

const newestForm: SchemaChange = (before) => {
  let schema = withoutNulls(before);
  schema = withListedItems(schema);
  for (const bound of ["Minimum", "Maximum"] as const) schema = withBound(schema, bound);
  schema = withKnownType(schema);
  schema = withRequiredNames(schema);
  return withNullable(schema);
};

/** Keywords that are null were not to be sent; of values null is one. */
function withoutNulls(schema: JsonObject): JsonObject {
  const empty: string[] = [];
  for (const key in schema) {
    const value = schema[key];
    const isEmptyEnum = key === "enum" && Array.isArray(value) && value.length === 0;
    if (isEmptyEnum || (value === null && key !== "const" && key !== "default")) empty.push(key);
  }
  return empty.length === 0 ? schema : without(schema, empty);
}

/** A list of schemas as `items` is `prefixItems` now, and what was `additionalItems` is `items`. */
function withListedItems(schema: JsonObject): JsonObject {
  if (!Array.isArray(schema.items)) return schema;
  const { items, additionalItems, ...others } = schema;
  return {
    ...others,
    ...(schema.items.length > 0 ? { prefixItems: items } : {}),
    ...(additionalItems === undefined ? {} : { items: additionalItems }),
  };
}

function withBound(schema: JsonObject, bound: "Minimum" | "Maximum"): JsonObject {
  const [name, exclusive] = [bound.toLowerCase(), `exclusive${bound}`];
  if (typeof schema[exclusive] !== "boolean") return schema;
  const plain = without(schema, [exclusive]);
  const isExclusive = schema[exclusive] && numberIn(schema[name]) !== undefined;
  return isExclusive ? { ...without(plain, [name]), [exclusive]: schema[name] } : plain;
}

function withKnownType(schema: JsonObject): JsonObject {
  const { type } = schema;
  if (type === undefined) return schema;
  if ([type].flat().includes("any")) return without(schema, ["type"]);
  const known = (name: unknown) => (typeof name === "string" ? (entryOf(typeNames, name.toLowerCase()) ?? name) : name);
  const after = Array.isArray(type) ? type.map(known) : known(type);
  return isSameJson(after, type) ? schema : { ...schema, type: after };
}

/** In the third draft a property said of itself whether it is required. */
function withRequiredNames(schema: JsonObject): JsonObject {
  const { properties, required } = schema;
  const after = mapPlaces(schema, withoutRequired);
  if (after === schema || !isObject(properties)) return after;
  const named = Object.keys(properties).filter((name) => saysRequired(properties[name]) && properties[name].required);
  if (named.length === 0) return after;
  return { ...after, required: [...new Set([...(Array.isArray(required) ? required : []), ...named])] };
}

const saysRequired = (value: unknown): value is JsonObject => isObject(value) && typeof value.required === "boolean";
const withoutRequired = (value: unknown): unknown => (saysRequired(value) ? without(value, ["required"]) : value);

/** OpenAPI's `nullable`. */
function withNullable(schema: JsonObject): JsonObject {
  if (typeof schema.nullable !== "boolean") return schema;
  const plain = without(schema, ["nullable"]);
  if (!schema.nullable) return plain;
  const { type, anyOf } = plain;
  const list: unknown[] = Array.isArray(plain.enum) ? plain.enum : [];
  return {
    ...plain,
    ...(type === undefined ? {} : { type: [...new Set([type, "null"].flat())] }),
    ...(Array.isArray(anyOf) ? { anyOf: [...anyOf, { type: "null" }] } : {}),
    ...(list.length > 0 && !list.includes(null) ? { enum: [...list, null] } : {}),
  };
}

// ── Booleans ──

/** Places in which every vendor takes a boolean. */
const takesBoolean = new Set([
  ...["additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"],
]);

/** A boolean in place of a schema: `true` is `{}`; `false` cannot be said in another way than in words. */
export const withoutBooleans = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    // The end of a tuple: the fixup for tuples reads it.
    const isTuple = Array.isArray(inner.prefixItems);
    return mapPlaces(inner, (value, keyword) => {
      if (typeof value !== "boolean" || takesBoolean.has(keyword) || (keyword === "items" && isTuple)) return value;
      return value ? {} : { description: "Never given." };
    });
  });

// ── Patterns ──

/** Patterns that OpenAI's endpoints cannot compile, as keyword and as names of properties; others stay. */
export const withoutPatterns = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    const plain = isRefused(inner.pattern) ? inWords(inner, ["pattern"]) : inner;
    const { patternProperties } = plain;
    const refused = isObject(patternProperties) ? Object.keys(patternProperties).filter(isRefused) : [];
    if (refused.length === 0) return plain;
    const left = without(patternProperties as JsonObject, refused);
    const patterns = refused.map((pattern) => JSON.stringify(pattern)).join(", ");
    return said({ ...plain, patternProperties: left }, `Names of further properties match ${patterns}.`);
  });

/**
 * Whether a pattern has `\\p{…}` ("… is not a 'regex'", BerriAI/litellm#40358) or looks around, as `(?!…)` does ("Invalid JSON
 * schema: regex lookaround is not supported. Found at $.properties.to.pattern.", opencode#32073, 2026-06). It goes from sign
 * to sign: a regular expression takes long for many backslashes.
 */
function isRefused(pattern: unknown): boolean {
  if (typeof pattern !== "string" || !beginnings.some((beginning) => pattern.includes(beginning))) return false;
  let isClass = false;
  for (let at = 0; at < pattern.length; at++) {
    const sign = pattern[at];
    if (sign === "\\") {
      at++;
      if (pattern[at + 1] === "{" && (pattern[at] === "p" || pattern[at] === "P")) return true;
    } else if (sign === "[") isClass = true;
    else if (sign === "]") isClass = false;
    else if (sign === "(" && !isClass && lookAround.test(pattern.slice(at, at + 4))) return true;
  }
  return false;
}

/** Most patterns have none of these, and are not walked. */
const beginnings = ["\\p{", "\\P{", "(?"];
const lookAround = /^\(\?<?[=!]/;

// ── Lists ──

/** Signs of what is said of one item of a tuple. */
const longestItem = 80;

/**
 * A tuple is a list of what any of its items may be; its description says which comes when. Neither OpenAI ("array schema
 * missing items", 2025-06) nor Google's OpenAPI schema knows `prefixItems`.
 */
export const withoutTuples = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    const { prefixItems } = inner;
    if (!Array.isArray(prefixItems) || prefixItems.length === 0) return inner;
    const { prefixItems: _, items, ...others } = inner;
    const size = prefixItems.length;
    const isClosed = items === false || numberIn(others.maxItems) === size;
    const further = isObject(items) ? [items] : [];
    const bounds = isClosed ? { maxItems: Math.min(size, numberIn(others.maxItems) ?? size) } : {};
    const words = prefixItems.map((item) => itemInWords(item)).join("; ");
    const count = isClosed ? `${size} items` : `The first ${size} items are`;
    return said(
      { ...others, ...bounds, items: either([...prefixItems, ...further]) },
      `${count}, in this order: ${words}.`,
    );
  });

/** A schema that takes what any of these take. Of those that have no others within, each stands there once. */
function either(schemas: readonly unknown[]): unknown {
  const kinds = new Map<unknown, unknown>();
  for (const schema of schemas) kinds.set(isFlat(schema) ? JSON.stringify(schema) : schema, schema);
  const [only, ...others] = kinds.values();
  if (others.length === 0) return only;
  return kinds.has("{}") || kinds.has("true") ? {} : { anyOf: [...kinds.values()] };
}

const isFlat = (schema: unknown): boolean =>
  !isObject(schema) || Object.values(schema).every((value) => typeof value !== "object");

function itemInWords(item: unknown): string {
  if (!isObject(item)) return "any value";
  const { title, description, type } = item;
  const kind = Array.isArray(type) ? type.join(" or ") : textOf(type) || "any value";
  const name = textOf(description) || textOf(title);
  return name === "" ? kind : `${kind} (${name.slice(0, longestItem)})`;
}

const isList = ({ type, items, prefixItems }: JsonObject): boolean =>
  type === "array" && items === undefined && prefixItems === undefined;

/** A list says what its items are: "In context=('properties', 'a'), array schema missing items" (OpenAI, since 2023-12). */
export const withItems = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => (isList(inner) ? { ...inner, items: {} } : inner));

/** Keywords that say of which type a value is. */
const tellsType = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "properties"];

/** Google's items have a type: "items: missing field". Those that may be anything are texts, which can be anything in JSON. */
export const withItemTypes = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    const items = isList(inner) ? {} : inner.items;
    if (!isObject(items) || tellsType.some((keyword) => keyword in items)) return inner;
    return { ...inner, items: { ...said(items, "Any value, as JSON."), type: "string" } };
  });

// ── Types and values ──

/** Of null alone, also as a list of one type. */
const isNull = (schema: unknown): boolean => isObject(schema) && isSameJson([schema.type].flat(), ["null"]);
const mayBeNull = "May be null.";

/** Null is said in words: `["string", "null"]` is `string`, and `anyOf` of something and null is that. */
export const withoutNull = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => withoutNullIn("oneOf", withoutNullIn("anyOf", withoutNullType(inner))));

function withoutNullType(schema: JsonObject): JsonObject {
  const { type } = schema;
  if (!Array.isArray(type) || !type.includes("null") || type.length === 1) return schema;
  const rest = type.filter((name) => name !== "null");
  return said({ ...schema, type: rest.length === 1 ? rest[0] : rest }, mayBeNull);
}

function withoutNullIn(key: "anyOf" | "oneOf", schema: JsonObject): JsonObject {
  const list = schema[key];
  const rest = Array.isArray(list) ? list.filter((item) => !isNull(item)) : [];
  if (!Array.isArray(list) || rest.length === 0 || rest.length === list.length) return schema;
  const left = rest.length === 1 ? mergedInto(without(schema, [key]), key, rest[0]) : { ...schema, [key]: rest };
  return said(left, mayBeNull);
}

/** The only branch of a union in its place; it stays a branch where both say something of the same keyword. */
function mergedInto(schema: JsonObject, key: string, branch: unknown): JsonObject {
  if (!isObject(branch)) return { ...schema, [key]: [branch] };
  const shared = Object.keys(branch).filter((name) => name in schema && name !== "description");
  if (shared.length > 0) return { ...schema, [key]: [branch] };
  const merged = { ...branch, ...schema };
  const [ours, theirs] = [textOf(schema.description), textOf(branch.description)];
  return ours !== "" && theirs !== "" && ours !== theirs ? said(merged, theirs) : merged;
}

/** One type of a list of them: the first that is not null, a list only with what it lists. The others are said in words. */
export const withOneType = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    const { type } = inner;
    if (!Array.isArray(type)) return inner;
    const able = type.filter((name) => name !== "null" && (name !== "array" || isObject(inner.items)));
    const [first = type.find((name) => name !== "null") ?? type[0], ...others] = able;
    const plain = without(inner, [...(first === "array" ? [] : ofLists), ...(first === "object" ? [] : ofObjects)]);
    if (first === undefined) return without(plain, ["type"]);
    const one = { ...plain, type: first };
    return others.length === 0 ? one : said(one, `May also be of type ${others.join(" or ")}.`);
  });

const ofLists = ["items", "prefixItems", "minItems", "maxItems", "uniqueItems"];
const ofObjects = ["properties", "required", "additionalProperties"];

/** Google's values of an enum are texts, of a schema of the type `string`. Others are said in words. */
export const withTextEnums = (schema: JsonObject): JsonObject =>
  mapSchema(schema, (inner) => {
    const values: unknown = Array.isArray(inner.enum) ? inner.enum : inner.const === undefined ? [] : [inner.const];
    if (!Array.isArray(values) || values.length === 0) return inner;
    const texts = values.filter((value) => typeof value === "string");
    const isOfTexts = inner.type === undefined || inner.type === "string";
    if (isOfTexts && texts.length === values.length) return inner;
    if (isOfTexts && texts.length > 0 && values.every((value) => value === null || typeof value === "string"))
      return said({ ...inner, enum: texts }, mayBeNull);
    const written = values.map((value) => JSON.stringify(value)).join(", ");
    const plain = without(inner, ["enum", "const"]);
    return said(plain, values.length === 1 ? `Always ${written}.` : `One of: ${written}.`);
  });

// ── Root ──

/** A tool's input is always an object, even if its schema does not say so. */
export function withRootType(schema: JsonObject): JsonObject {
  const { type } = schema;
  const mayBeObject = type == null || (Array.isArray(type) && type.includes("object"));
  return mayBeObject ? { ...schema, type: "object" } : schema;
}
