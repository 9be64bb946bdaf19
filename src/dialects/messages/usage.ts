/** The usage of a messages reply. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/** Anthropic does not include cached tokens in `input_tokens`; the hub does. */
export function decodeUsage(usage: unknown, extras: JsonObject): Partial<Usage> {
  const counts = isObject(usage) ? usage : {};
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = counts;
  const details = isObject(counts.output_tokens_details) ? counts.output_tokens_details : {};
  const [fresh, cachedInput] = [countIn(input_tokens), countIn(cache_read_input_tokens)];
  const cacheWrite = countIn(cache_creation_input_tokens);
  const input = fresh === undefined ? undefined : fresh + (cachedInput ?? 0) + (cacheWrite ?? 0);
  const written = isObject(counts.cache_creation) ? counts.cache_creation : {};
  return omitUndefined({
    input,
    cachedInput,
    cacheWrite,
    cacheWriteHour: countIn(written.ephemeral_1h_input_tokens),
    output: countIn(output_tokens),
    reasoning: countIn(details.thinking_tokens),
    nanoCredits: isObject(extras.copilot_usage) ? countIn(extras.copilot_usage.total_nano_aiu) : undefined,
  });
}

/** As a stream's end has it: each member is there, and null where a number is not known (@anthropic-ai/sdk 1.12). */
export function encodeUsage({ input, cachedInput, cacheWrite, output, reasoning }: Partial<Usage>): JsonObject {
  return {
    input_tokens: Math.max(0, (input ?? 0) - (cachedInput ?? 0) - (cacheWrite ?? 0)),
    cache_creation_input_tokens: cacheWrite ?? null,
    cache_read_input_tokens: cachedInput ?? null,
    output_tokens: output ?? 0,
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: null,
  };
}

/** As a message has it: also for how long the cache keeps what was written, and what only Anthropic's own service knows. */
export function encodeMessageUsage(usage: Partial<Usage>): JsonObject {
  const { cacheWrite = 0, cacheWriteHour: hour } = usage;
  const cache_creation =
    hour === undefined
      ? null
      : { ephemeral_5m_input_tokens: Math.max(0, cacheWrite - hour), ephemeral_1h_input_tokens: hour };
  return { ...encodeUsage(usage), cache_creation, inference_geo: null, service_tier: null, speed: null };
}
