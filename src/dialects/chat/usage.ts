/** What a reply of the chat dialect used. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined } from "../hub/json";
import type { Usage } from "../hub/reply";

/**
 * What nobody told is missing, never 0; the charge is Copilot's own member.
 *
 * OpenAI counts thinking within `completion_tokens`. Gemini on Copilot, and xAI, count it beside: their total says so, and
 * the first has the number in `usage.reasoning_tokens` (opencode's recorded Copilot streams; xAI's API reference).
 */
export function decodeUsage({ usage, copilot_usage: copilot }: JsonObject): Partial<Usage> {
  const told: Partial<Usage> = {};
  const tell = (key: keyof Usage, value: unknown) => {
    const count = countIn(value);
    if (count !== undefined) told[key] = count;
  };
  if (isObject(usage)) {
    tell("input", usage.prompt_tokens);
    tell("output", usage.completion_tokens);
    if (isObject(usage.prompt_tokens_details)) {
      tell("cachedInput", usage.prompt_tokens_details.cached_tokens);
      tell("cacheWrite", usage.prompt_tokens_details.cache_creation_input_tokens);
    }
    tell("reasoning", reasoningIn(usage));
    if (isBeside(told, countIn(usage.total_tokens))) told.output = (told.output ?? 0) + (told.reasoning ?? 0);
  }
  if (isObject(copilot)) tell("nanoCredits", copilot.total_nano_aiu);
  return told;
}

function reasoningIn({ reasoning_tokens, completion_tokens_details: details }: JsonObject): number | undefined {
  const told = [countIn(isObject(details) ? details.reasoning_tokens : undefined), countIn(reasoning_tokens)];
  const numbers = told.filter((count) => count !== undefined);
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}

/** The total says that thinking is no part of the output. */
const isBeside = ({ input = 0, output = 0, reasoning = 0 }: Partial<Usage>, total: number | undefined): boolean =>
  reasoning > 0 && total === input + output + reasoning;

/** The wire wants both sums or nothing: what one side told alone stands beside a 0. */
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
        : omitUndefined({ cached_tokens: cachedInput, cache_creation_input_tokens: cacheWrite }),
    completion_tokens_details: reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
  });
}
