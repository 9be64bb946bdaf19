/** What a reply of the chat dialect used. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { countIn, said } from "../hub/json";
import type { Usage } from "../hub/reply";

/** What nobody told is missing, never 0; the charge is Copilot's own member. */
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
    if (isObject(usage.completion_tokens_details)) tell("reasoning", usage.completion_tokens_details.reasoning_tokens);
  }
  if (isObject(copilot)) tell("nanoCredits", copilot.total_nano_aiu);
  return told;
}

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
  return said({
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details:
      cachedInput === undefined && cacheWrite === undefined
        ? undefined
        : said({ cached_tokens: cachedInput, cache_creation_input_tokens: cacheWrite }),
    completion_tokens_details: reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
  });
}
