/** The usage of a chat reply. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/**
 * A number that was not reported is undefined, never 0. The charge is Copilot's own field, and so is Claude's name for what
 * was written to the cache; OpenAI calls it `cache_write_tokens` (its package, 7.55).
 *
 * OpenAI includes thinking in `completion_tokens`. Gemini on Copilot and xAI do not, as their total shows;
 * Gemini reports it in `usage.reasoning_tokens` (opencode's recorded Copilot streams; xAI's API reference), and Google's own
 * API of this dialect in the total alone (mozilla-ai/any-llm#1290, 2026-08).
 */
export function decodeUsage({ usage, copilot_usage: copilot }: JsonObject): Partial<Usage> {
  const nanoCredits = isObject(copilot) ? countIn(copilot.total_nano_aiu) : undefined;
  if (!isObject(usage)) return omitUndefined({ nanoCredits });
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : nothing;
  const counts: Partial<Usage> = {
    input: countIn(usage.prompt_tokens),
    output: countIn(usage.completion_tokens),
    cachedInput: countIn(details.cached_tokens),
    cacheWrite: countIn(details.cache_write_tokens ?? details.cache_creation_input_tokens),
    reasoning: reasoningIn(usage),
    nanoCredits,
  };
  counts.output = wholeOutput(counts, usage);
  return omitUndefined(counts);
}

const nothing: JsonObject = {};

/** The output with thinking; undefined where it is not known whether it includes that. */
function wholeOutput(counts: Partial<Usage>, { total_tokens, reasoning_tokens }: JsonObject): number | undefined {
  const { output = 0, reasoning = 0 } = counts;
  const total = countIn(total_tokens);
  if (isBeside(counts, total)) return output + reasoning;
  // This form counts thinking beside the output, and only the total would prove it.
  if (total === undefined && countIn(reasoning_tokens)) return undefined;
  return counts.reasoning === undefined ? (outputInTotal(counts, total) ?? counts.output) : counts.output;
}

function reasoningIn({ reasoning_tokens, completion_tokens_details: details }: JsonObject): number | undefined {
  const among = countIn(isObject(details) ? details.reasoning_tokens : undefined);
  const beside = countIn(reasoning_tokens);
  return among === undefined || beside === undefined ? (among ?? beside) : Math.max(among, beside);
}

/** Whether the total shows that the output does not include thinking. */
const isBeside = ({ input = 0, output = 0, reasoning = 0 }: Partial<Usage>, total: number | undefined): boolean =>
  reasoning > 0 && total === input + output + reasoning;

/** The output where the total shows that something was counted that the parts do not name. */
const outputInTotal = ({ input, output }: Partial<Usage>, total: number | undefined): number | undefined =>
  input !== undefined && output !== undefined && total !== undefined && total > input + output
    ? total - input
    : undefined;

/** Both sums or none are written; if only one is known, the other is 0. */
export function encodeUsage({
  input,
  output,
  cachedInput,
  cacheWrite,
  reasoning,
}: Partial<Usage>): JsonObject | undefined {
  if (input === undefined && output === undefined) return undefined;
  const [prompt_tokens, completion_tokens] = [input ?? 0, output ?? 0];
  return omitUndefined({
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details:
      cachedInput === undefined && cacheWrite === undefined
        ? undefined
        : omitUndefined({ cached_tokens: cachedInput, cache_write_tokens: cacheWrite }),
    completion_tokens_details: reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
  });
}
