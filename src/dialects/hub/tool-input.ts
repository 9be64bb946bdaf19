/** The input of a tool call, for dialects that write it as an object. */
import { isObject, parseWithSource } from "../../lib/json";
import type { JsonObject } from "./conversation";

/** A call's input as an object; anything else is kept under `raw_arguments`. */
export function inputObject({ input, freeform }: { input: string; freeform?: true }): JsonObject {
  if (freeform) return { input };
  if (input.trim() === "") return {};
  const parsed = parseWithSource(input);
  return isObject(parsed) ? parsed : { raw_arguments: input };
}

/** Whether a call's input is complete: JSON of an object, or nothing, which stands for an empty one. */
export const isCompleteInput = ({ input, freeform }: { input: string; freeform?: true }): boolean =>
  freeform === true || input.trim() === "" || isObject(parseWithSource(input));
