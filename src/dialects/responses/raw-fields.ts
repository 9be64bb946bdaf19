/**
 * Reads fields of an event from its text, because parsing each delta would cost more than everything else.
 * Quotes inside a JSON string are escaped, so text cannot match a key. What is not found is left to the parser.
 */
import { isObject } from "../../json";
import { jsonOf, type SseFrame } from "../../net/stream/sse";

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
