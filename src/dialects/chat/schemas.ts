/** The schemas of a chat request: of its functions, and of the reply. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { mapped } from "../hub/lists";
import { wishForJson } from "../hub/output-schema";
import { describedAs, type OfferedFunction, type SchemaPlaces } from "../hub/refused-schemas";

function mapFunctions(
  { tools }: JsonObject,
  change: (offered: OfferedFunction) => OfferedFunction,
): JsonObject | undefined {
  if (!Array.isArray(tools)) return undefined;
  const after = mapped(tools as unknown[], (tool, at) => {
    const definition = isObject(tool) ? tool.function : undefined;
    if (!isObject(tool) || !isObject(definition)) return tool;
    const { name, description, parameters, strict } = definition;
    const offered = { place: `tools[${at}]`, name, description, schema: parameters, strict };
    const next = change(offered);
    if (next === offered) return tool;
    return { ...tool, function: { ...definition, ...describedAs(offered, next), parameters: next.schema } };
  });
  return after === tools ? undefined : { tools: after };
}

function mapFormat(body: JsonObject, change: (schema: JsonObject) => JsonObject | undefined): JsonObject | undefined {
  const { response_format: format, messages } = body;
  const holder = isObject(format) ? format.json_schema : undefined;
  if (!isObject(format) || !isObject(holder) || !isObject(holder.schema)) return undefined;
  const { schema } = holder;
  const after = change(schema);
  if (after === schema) return undefined;
  if (after) return { response_format: { ...format, json_schema: { ...holder, schema: after } } };
  return Array.isArray(messages) ? { response_format: undefined, messages: withWish(messages, schema) } : undefined;
}

/** The messages with the wish for one JSON object after the instructions. @param schema Which it has to match; undefined for any. */
export function withWish(messages: unknown[], schema?: unknown): unknown[] {
  const after = messages.findIndex((message) => !isObject(message) || message.role !== "system");
  const wish = { role: "system", content: wishForJson(schema) };
  return messages.toSpliced(after === -1 ? messages.length : after, 0, wish);
}

export const schemas: SchemaPlaces = { mapFunctions, mapFormat };
