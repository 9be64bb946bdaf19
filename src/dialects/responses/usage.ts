/** The usage of a response. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/**
 * A number that was not reported is undefined, never 0.
 * @param event The event that holds the response; the response itself if it is a full reply.
 */
export function decodeUsage(response: JsonObject, event: JsonObject): Partial<Usage> {
  const usage = isObject(response.usage) ? response.usage : {};
  const inputDetails = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const outputDetails = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  // The charge is beside the response in a stream, inside it in a full reply.
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

/** Characters of thinking in a token, roughly. */
const charactersPerToken = 4;

/**
 * Null if neither sum is known; if only one is known, the other is 0. All numbers are required: OpenAI's packages read those
 * of the details without looking whether they are there, and Codex accepts no null for the reasoning tokens.
 * @param thought Characters of the reply's thinking: what the tokens are estimated by if the upstream does not count them.
 */
export function encodeUsage(
  { input, cachedInput, cacheWrite, output, reasoning }: Partial<Usage>,
  thought: number,
): JsonObject | null {
  if (input === undefined && output === undefined) return null;
  const estimated = Math.min(output ?? 0, Math.ceil(thought / charactersPerToken));
  return {
    input_tokens: input ?? 0,
    input_tokens_details: { cached_tokens: cachedInput ?? 0, cache_write_tokens: cacheWrite ?? 0 },
    output_tokens: output ?? 0,
    output_tokens_details: { reasoning_tokens: reasoning ?? estimated },
    total_tokens: (input ?? 0) + (output ?? 0),
  };
}
