/** Where the text of a chunk is. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import type { TextSlot } from "../hub/text-delta";
import { thinkingFields } from "./thinking";

/** The fields of a message that hold text. */
export const textFields: readonly string[] = ["content", "refusal", ...thinkingFields];

/** The text of a chunk: usually the only thing that changes from one chunk to the next. */
export function deltaText(chunk: unknown): TextSlot | undefined {
  if (!isObject(chunk) || !Array.isArray(chunk.choices) || chunk.choices.length !== 1) return undefined;
  const delta = chunk.choices[0]?.delta;
  if (!isObject(delta)) return undefined;
  const calls = delta.tool_calls;
  if (!Array.isArray(calls) || calls.length === 0) return slotIn(delta, textFields);
  return isObject(calls[0]?.function) ? slotIn(calls[0].function, ["arguments"]) : undefined;
}

function slotIn(holder: JsonObject, keys: readonly string[]): TextSlot | undefined {
  const key = keys.find((name) => typeof holder[name] === "string" && holder[name] !== "");
  return key === undefined ? undefined : [holder, key];
}
