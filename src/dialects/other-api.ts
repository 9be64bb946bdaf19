/**
 * Fields that a client of one of OpenAI's two APIs takes from the other one, as OpenRouter's clients do. Those that mean
 * the same become the API's own, if it is not there as well; a request that passes through is not read.
 */

import { isObject } from "../lib/json";
import type { JsonObject } from "./hub/conversation";
import { omit, omitUndefined } from "./hub/json";

/** A request for chat completions; the same object if it has its own fields only. */
export function asChatRequest(request: JsonObject): JsonObject {
  const moves: JsonObject = {};
  const { max_output_tokens: limit, instructions, reasoning, text } = request;
  if (limit != null && request.max_tokens == null && request.max_completion_tokens == null)
    Object.assign(moves, { max_output_tokens: undefined, max_completion_tokens: limit });
  if (typeof instructions === "string" && Array.isArray(request.messages)) {
    moves.instructions = undefined;
    moves.messages = [{ role: "system", content: instructions }, ...(request.messages as unknown[])];
  }
  if (isObject(reasoning)) {
    const taken = [
      ...take(moves, request, "reasoning_effort", reasoning, "effort"),
      ...take(moves, request, "thinking_budget", reasoning, "max_tokens"),
    ];
    if (taken.length > 0) moves.reasoning = omit(reasoning, new Set(taken));
  }
  if (isObject(text)) {
    const taken = take(moves, request, "verbosity", text, "verbosity");
    const format = request.response_format == null ? nestedFormat(text.format) : undefined;
    if (format) moves.response_format = format;
    if (format || taken.length > 0) moves.text = omit(text, new Set(format ? [...taken, "format"] : taken));
  }
  return moved(request, moves);
}

/** A request for a response; the same object if it has its own fields only. */
export function asResponsesRequest(request: JsonObject): JsonObject {
  const moves: JsonObject = {};
  const limit = (["max_completion_tokens", "max_tokens"] as const).find((name) => request[name] != null);
  if (limit && request.max_output_tokens == null)
    Object.assign(moves, { [limit]: undefined, max_output_tokens: request[limit] });
  const inner = (name: string): JsonObject => (isObject(request[name]) ? request[name] : {});
  if (request.reasoning_effort != null && inner("reasoning").effort == null)
    Object.assign(moves, {
      reasoning_effort: undefined,
      reasoning: { ...inner("reasoning"), effort: request.reasoning_effort },
    });
  const text: JsonObject = {};
  const format = inner("text").format == null ? flatFormat(request.response_format) : undefined;
  if (format) Object.assign(text, { format });
  if (request.verbosity != null && inner("text").verbosity == null)
    Object.assign(text, { verbosity: request.verbosity });
  if (Object.keys(text).length > 0)
    Object.assign(moves, {
      text: { ...inner("text"), ...text },
      ...("format" in text ? { response_format: undefined } : {}),
      ...("verbosity" in text ? { verbosity: undefined } : {}),
    });
  return moved(request, moves);
}

const moved = (request: JsonObject, moves: JsonObject): JsonObject =>
  Object.keys(moves).length === 0 ? request : omitUndefined({ ...request, ...moves });

/** Takes a member of an object for a field that the request does not have. @returns The members that were taken. */
function take(moves: JsonObject, request: JsonObject, field: string, from: JsonObject, member: string): string[] {
  if (from[member] == null || request[field] != null) return [];
  moves[field] = from[member];
  return [member];
}

/** `text.format` as a `response_format`; undefined for a form that is not known. */
function nestedFormat(format: unknown): JsonObject | undefined {
  if (!isObject(format) || (format.type !== "json_schema" && format.type !== "json_object")) return undefined;
  const { type, ...schema } = format;
  return type === "json_schema" ? { type, json_schema: schema } : { type };
}

/** The same the other way. */
function flatFormat(format: unknown): JsonObject | undefined {
  if (!isObject(format)) return undefined;
  if (format.type === "json_object") return { type: format.type };
  return format.type === "json_schema" && isObject(format.json_schema)
    ? { type: format.type, ...format.json_schema }
    : undefined;
}
