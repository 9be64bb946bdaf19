/** How long a prompt may be: the upstream's own limit, or a lower one that the owner sets or that the model's price suggests. */
import type { Config } from "../../../config/schema";
import type { Model } from "./model";
import { isLongDearer, type Price } from "./price-list";

/** What the config says of them. */
export type LimitConfig = Pick<Config, "maxPromptTokens">;

/**
 * AI credits per million tokens of prompt. A dearer price that is no more than this is still that of a small model, such as
 * Claude Haiku 5.5's of 50 above 100,000 tokens (2026-11): to refuse there would cost more than it saves.
 */
const smallPrice = 100;

/** Of a price that has a dearer one for long prompts. */
const isDear = ({ tokens, long }: Price): boolean => (long!.input * 1_000_000) / tokens!.per > smallPrice;

/**
 * Tokens above which dragoman refuses a prompt: those of the config, else where a dearer price begins that is not that of a
 * small model. Undefined where only the upstream's limit counts.
 */
export function promptLimitOf({ id, price, limits }: Model, { maxPromptTokens }: LimitConfig): number | undefined {
  const limit = Object.hasOwn(maxPromptTokens, id)
    ? maxPromptTokens[id]
    : isLongDearer(price) && isDear(price)
      ? price.long?.above
      : undefined;
  return limit !== undefined && limit < (limits.prompt ?? Number.POSITIVE_INFINITY) ? limit : undefined;
}

/** The limits that clients see: those that hold here. */
export function clientLimitsOf(model: Model, config: LimitConfig): Pick<Model["limits"], "context" | "prompt"> {
  const { context, prompt, output } = model.limits;
  const limit = promptLimitOf(model, config);
  if (limit === undefined) return { context, prompt };
  return { prompt: limit, context: Math.min(context ?? Number.POSITIVE_INFINITY, limit + (output ?? 0)) };
}
