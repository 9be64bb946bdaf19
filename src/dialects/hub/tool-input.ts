/** The input of a tool call, for dialects that write it as an object. */
import { isObject, parseJson, parseWithSource } from "../../lib/json";
import { withoutHalves } from "../../lib/net/json/half-characters";
import type { JsonObject } from "./conversation";

/** Whether a call has no input: models and clients write `null` for it, and Lua and PHP an empty list. */
export const isEmptyInput = (input: string): boolean => /^\s*(?:(?:null|\[\s*\])\s*)?$/.test(input);

/** A call's input as an object; anything else is kept under `raw_arguments`. */
export function inputObject({ input, freeform }: { input: string; freeform?: true }): JsonObject {
  if (freeform) return { input };
  if (isEmptyInput(input)) return {};
  const parsed = parseWithSource(withoutHalves(input));
  return isObject(parsed) ? parsed : { raw_arguments: input };
}

/** A call's input as JSON of an object: the same text if it is that. */
export function inputText(input: unknown): string {
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return isObject(parseJson(text)) ? text : JSON.stringify(inputObject({ input: text }));
}

/** Whether a call's input is complete: JSON of an object, or nothing, which stands for an empty one. */
export const isCompleteInput = ({ input, freeform }: { input: string; freeform?: true }): boolean =>
  freeform === true || isEmptyInput(input) || isObject(parseWithSource(input));
