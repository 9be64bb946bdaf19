/** What this upstream refuses in the schemas of tools and replies, with the words of the models' vendors. */
import type { Objection, View } from "./model-call";
import { anthropicInvalid, invalid, type Json, list, plain, record, string } from "./wire";

/** A schema within another one, with the steps that lead to it. */
interface Place {
  schema: unknown;
  path: string[];
}

const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema and all that stand in it, where vendors look for them. */
function* placesIn(schema: unknown, path: string[] = []): Generator<Place> {
  yield { schema, path };
  if (!isRecord(schema)) return;
  for (const key of ["properties", "$defs", "definitions"])
    for (const [name, inner] of Object.entries(record(schema[key]))) yield* placesIn(inner, [...path, key, name]);
  for (const key of ["anyOf", "oneOf", "allOf", "prefixItems"])
    for (const [at, inner] of list(schema[key]).entries()) yield* placesIn(inner, [...path, key, String(at)]);
  if (Array.isArray(schema.items))
    for (const [at, inner] of schema.items.entries()) yield* placesIn(inner, [...path, "items", String(at)]);
  else if (schema.items !== undefined) yield* placesIn(schema.items, [...path, "items"]);
}

const looksAround = /\(\?<?[=!]/;

/** Google's models say nothing of what they refuse in a schema. */
function* googleSchemas(tools: readonly { name: string; schema: unknown }[]): Generator<Objection> {
  for (const { name, schema } of tools) {
    yield !/^[a-z_]/i.test(name) &&
      invalid("invalid_request_body", "Invalid function name. Must start with a letter or an underscore.");
    for (const { schema: inner } of placesIn(schema)) {
      const { type, enum: values, items } = record(inner);
      const isRefused =
        !isRecord(inner) ||
        Array.isArray(type) ||
        list(values).some((value) => typeof value !== "string") ||
        (type === "array" && Object.keys(record(items)).length === 0);
      yield isRefused && plain(400, "Bad Request");
    }
  }
}

/** OpenAI's answers name the function. */
function* openaiSchemas(tools: readonly { name: string; schema: unknown }[]): Generator<Objection> {
  for (const { name, schema } of tools) {
    if (schema === undefined) continue;
    const refused = (why: string) =>
      invalid("invalid_function_parameters", `Invalid schema for function '${name}': ${why}`, "tools");
    const root = record(schema);
    yield root.type !== "object" &&
      refused(`schema must be a JSON Schema of 'type: "object"', got 'type: "${string(root.type) || "None"}"'.`);
    yield ["oneOf", "anyOf", "allOf", "enum", "not"].some((key) => key in root) &&
      refused("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.");
    for (const { schema: inner, path } of placesIn(schema)) {
      const where = `In context=(${path.map((step) => `'${step}'`).join(", ")}), `;
      yield !isRecord(inner) && refused(`${where}${JSON.stringify(inner)} is not of type 'object', 'boolean'.`);
      const { type, items, pattern } = record(inner);
      yield Array.isArray(items) && refused(`${where}${JSON.stringify(items)} is not of type 'object', 'boolean'.`);
      yield type === "array" && !isRecord(items) && refused(`${where}array schema missing items.`);
      yield /\\p\{/i.test(string(pattern)) && refused(`'${string(pattern)}' is not a 'regex'.`);
    }
    yield* lookArounds(schema, "tools");
  }
}

/** @param param The field of the request with the schema. */
export function* lookArounds(schema: unknown, param: string): Generator<Objection> {
  for (const { schema: inner, path } of placesIn(schema))
    yield looksAround.test(string(record(inner).pattern)) &&
      invalid(
        "invalid_json_schema",
        `Invalid JSON schema: regex lookaround is not supported. Found at $.${[...path, "pattern"].join(".")}.`,
        param,
      );
}

const types = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** Anthropic's answers name the tool by its place. */
export function* anthropicSchema(schema: unknown, path: string): Generator<Objection> {
  const root = record(schema);
  const refused = (why: string) => anthropicInvalid(`${path}: ${why}`);
  yield root.type === undefined && anthropicInvalid(`${path}.type: Field required`);
  yield ["oneOf", "anyOf", "allOf"].some((key) => key in root) &&
    refused("input_schema does not support oneOf, allOf, or anyOf at the top level");
  yield Object.keys(record(root.properties)).some((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name)) &&
    anthropicInvalid(`${path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`);
  for (const { schema: inner } of placesIn(schema)) {
    const { type, items, exclusiveMinimum, exclusiveMaximum } = record(inner);
    const isOlder =
      (!isRecord(inner) && typeof inner !== "boolean") ||
      Array.isArray(items) ||
      typeof exclusiveMinimum === "boolean" ||
      typeof exclusiveMaximum === "boolean" ||
      [type].flat().some((name) => name !== undefined && !types.includes(string(name)));
    yield isOlder &&
      refused(
        "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use.",
      );
  }
}

const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"];
const formats = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/** What Anthropic's structured outputs do not enforce. */
export function* anthropicFormat(schema: unknown): Generator<Objection> {
  const refused = (why: string) => anthropicInvalid(`output_config.format.schema: ${why}`);
  for (const { schema: inner } of placesIn(schema)) {
    const { type, additionalProperties, minItems, format, ...others } = record(inner);
    const bound = bounds.find((name) => name in others);
    yield [type].flat().includes("object") &&
      additionalProperties !== false &&
      refused("For 'object' type, 'additionalProperties' must be explicitly set to false");
    yield bound !== undefined && refused(`For '${string(type)}' type, property '${bound}' is not supported`);
    yield minItems !== undefined &&
      minItems !== 0 &&
      minItems !== 1 &&
      refused("For 'array' type, 'minItems' values other than 0 or 1 are not supported");
    yield "maxItems" in others && refused("For 'array' type, property 'maxItems' is not supported");
    yield format !== undefined &&
      !formats.includes(string(format)) &&
      refused(`String format '${string(format)}' is not supported`);
    yield looksAround.test(string(others.pattern)) &&
      refused("Invalid regex in pattern field: lookaround is not supported");
    yield string(others.$ref) === "#" && refused("Recursive schemas are not supported");
  }
}

/** The schemas of the tools of a chat or responses request. */
export function* openSchemas({ ask: { tools }, model }: View): Generator<Objection> {
  const functions = tools.filter(({ kind }) => kind === "function");
  if (model.family === "gemini") yield* googleSchemas(functions);
  else if (model.family === "gpt") yield* openaiSchemas(functions);
  else
    for (const [at, { schema }] of functions.entries())
      if (schema !== undefined) yield* anthropicSchema(schema, `tools.${at}.custom.input_schema`);
}
