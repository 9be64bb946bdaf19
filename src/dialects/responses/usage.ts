/** What a reply of the responses dialect used. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/**
 * What nobody told is missing, never 0.
 * @param event What the response came in: itself, where it is a full reply.
 */
export function decodeUsage(response: JsonObject, event: JsonObject): Partial<Usage> {
  const usage = isObject(response.usage) ? response.usage : {};
  const inputDetails = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const outputDetails = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  // The charge stands beside the response in a stream, inside it in a full reply.
  const charge = [event.copilot_usage, response.copilot_usage].find(isObject);
  return omitUndefined({
    input: countIn(usage.input_tokens),
    cachedInput: countIn(inputDetails.cached_tokens),
    cacheWrite: countIn(inputDetails.cache_write_tokens),
    output: countIn(usage.output_tokens),
    reasoning: countIn(outputDetails.reasoning_tokens),
    nanoCredits: countIn(charge?.total_nano_aiu),
  });
}

/**
 * Null where neither sum was told; what one side told alone stands beside a 0.
 * @param thought Whether the reply shows thinking: how much it took is then unknown where nobody told it, not 0. Codex
 * reads null there, but no null within.
 */
export function encodeUsage(
  { input, cachedInput, cacheWrite, output, reasoning }: Partial<Usage>,
  thought: boolean,
): JsonObject | null {
  if (input === undefined && output === undefined) return null;
  return {
    input_tokens: input ?? 0,
    input_tokens_details: omitUndefined({ cached_tokens: cachedInput ?? 0, cache_write_tokens: cacheWrite }),
    output_tokens: output ?? 0,
    output_tokens_details: reasoning === undefined && thought ? null : { reasoning_tokens: reasoning ?? 0 },
    total_tokens: (input ?? 0) + (output ?? 0),
  };
}
