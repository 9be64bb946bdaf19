/**
 * Reads fields of an event from its text, because parsing each delta would cost more than everything else.
 * Quotes inside a JSON string are escaped, so text cannot match a key. What is not found is left to the parser.
 */
import { isEscaped, isObject, unescaped } from "../../json";
import { jsonOf, type SseFrame } from "../../net/sse";
import type { JsonObject } from "../hub/conversation";

/** The events that end a stream. */
export const terminalTypes: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error",
]);

/** Whether this looks like a JSON object. */
export const looksWhole = (data: string): boolean => data.startsWith('{"') && data.endsWith("}");

const typeFirst = '{"type":"';

/** The event's type: usually its first field, and the value of its `event:` line. */
export function eventType(frame: SseFrame): string {
  const { data = "", event = "" } = frame;
  if (data.startsWith(typeFirst)) return data.slice(typeFirst.length, data.indexOf('"', typeFirst.length));
  const json = event.startsWith("response.") ? undefined : jsonOf(frame);
  return isObject(json) && typeof json.type === "string" ? json.type : event;
}

/** The number after a key, which is given as `"key":`. */
export function numberAt(data: string, key: string): number | undefined {
  const found = data.indexOf(key);
  if (found === -1) return undefined;
  const number = Number.parseInt(data.slice(found + key.length, found + key.length + 16), 10);
  return Number.isNaN(number) ? undefined : number;
}

/** The fields of a delta that the decoder reads. */
export function deltaIn(data: string): JsonObject | undefined {
  const output_index = numberAt(data, '"output_index":');
  const delta = looksWhole(data) ? stringAt(data, '"delta":"') : undefined;
  if (output_index === undefined || delta === undefined) return undefined;
  const content_index = numberAt(data, '"content_index":');
  const summary_index = content_index === undefined ? numberAt(data, '"summary_index":') : undefined;
  return { output_index, content_index, summary_index, delta };
}

function stringAt(data: string, key: string): string | undefined {
  const found = data.indexOf(key);
  if (found === -1) return undefined;
  const start = found + key.length;
  let end = data.indexOf('"', start);
  while (end !== -1 && isEscaped(data, end)) end = data.indexOf('"', end + 1);
  if (end === -1) return undefined;
  const serialized = data.slice(start, end);
  return serialized.includes("\\") ? unescaped(serialized) : serialized;
}
