/** The usage of a gemini reply. */
import type { JsonObject } from "../hub/conversation";
import { omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/** Google counts thoughts beside the answer, and cached tokens in the prompt. Undefined if nothing is known. */
export function encodeUsage({ input, output, cachedInput, reasoning }: Partial<Usage>): JsonObject | undefined {
  if (input === undefined && output === undefined) return undefined;
  return omitUndefined({
    promptTokenCount: input,
    candidatesTokenCount: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cachedInput,
    totalTokenCount: (input ?? 0) + (output ?? 0),
  });
}
