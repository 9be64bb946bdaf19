/**
 * The members of the upstream's answers that prices, limits, endpoints, quotas, tokens and usage are read from. A name that
 * is new may do no harm; one of these that is gone makes a number unknown, and `losses.ts` says so.
 */

import type { Dialect, JsonObject } from "../../dialects/hub/conversation";
import type { Usage } from "../../dialects/hub/reply";
import { isObject } from "../../lib/json";
import { snapshotHeaders } from "../../people/accounts/quota";

/** Which answer holds the member. */
export type AnswerKind = "models" | "token" | "user" | "answers" | "quota headers" | Dialect;

export interface ReadMember {
  where: AnswerKind;
  /** With dots between objects. Of names apart by `|`, one suffices: they are of different generations. */
  path: string;
  /** What is wrong without it: the beginning of a sentence that ends in `since …`. */
  affects: string;
  /** Answers may lack it: it is missed only where it was before. Without this, every known generation has it. */
  isOptional?: true;
}

/** A member of an answer that is looked at as a whole. */
export interface AnswerMember extends ReadMember {
  /** The names of the objects around it, from the outside in, and its own. */
  around: readonly (readonly string[])[];
  names: readonly string[];
  /** Whether the object around it has to have it; a member is not missed where that object is missing. */
  given?(around: JsonObject, answer: JsonObject): boolean;
  /** A single answer may lack it: it is missed where several in a row do. */
  isGradual?: true;
}

/** A number of a reply's usage. */
export interface UsageMember extends ReadMember {
  where: Dialect;
  /** What is read from it. */
  usage: keyof Usage;
}

type AnswerRow = Omit<AnswerMember, "where" | "around" | "names">;

const objectAt = (json: unknown, name: string): JsonObject => {
  const found = isObject(json) ? json[name] : undefined;
  return isObject(found) ? found : {};
};
const typeOf = (model: JsonObject) => objectAt(model, "capabilities").type;
const isChat = (_: JsonObject, model: JsonObject) => typeOf(model) === "chat";
const isEmbeddings = (_: JsonObject, model: JsonObject) => typeOf(model) === "embeddings";
const boundaryOf = (prices: JsonObject) => {
  const { max_prompt_tokens, context_max } = objectAt(prices, "default");
  return max_prompt_tokens ?? context_max;
};
/** Prices that hold up to a prompt that is shorter than what the model takes: longer ones have a price of their own. */
const hasBoundary = (prices: JsonObject, model: JsonObject) => {
  const longest = objectAt(objectAt(model, "capabilities"), "limits").max_prompt_tokens;
  return Number(boundaryOf(prices)) < Number(longest);
};
const hasLongPrices = (_: JsonObject, model: JsonObject) =>
  isObject(objectAt(objectAt(model, "billing"), "token_prices").long_context);

const premium = "quota_snapshots.premium_interactions|premium_models";
const prices = "billing.token_prices";

// biome-ignore format: a table
const ofModels: AnswerRow[] = [
  { path: "id", affects: "which models there are is unknown" },
  { path: "capabilities", affects: "the limits and abilities of models are unknown" },
  { path: "capabilities.type", affects: "which models are for conversations is unknown" },
  { path: "capabilities.supports", given: isChat, affects: "the abilities of models are unknown, and none is used" },
  { path: "capabilities.limits", given: isChat, affects: "the limits of models are unknown" },
  { path: "capabilities.limits.max_context_window_tokens", given: isChat, affects: "the context windows of models are unknown" },
  { path: "capabilities.limits.max_prompt_tokens", given: isChat, affects: "how long a prompt may be is unknown" },
  { path: "capabilities.limits.max_output_tokens", given: isChat, affects: "how long an answer may be is unknown" },
  { path: "capabilities.limits.max_inputs", given: isEmbeddings, affects: "how many texts one request for embeddings may hold is unknown" },
  { path: "supported_endpoints", given: isChat, affects: "which endpoints serve a model is unknown, and chat completions are asked" },
  { path: "policy.state", affects: "which models are enabled is unknown" },
  { path: "billing", affects: "the cost of requests is unknown" },
  { path: "billing.token_prices|multiplier", affects: "the cost of requests is unknown" },
  { path: `${prices}.batch_size`, affects: "the cost of requests is unknown" },
  { path: `${prices}.default`, affects: "the cost of requests is unknown" },
  { path: `${prices}.default.input_price`, affects: "the cost of requests is unknown" },
  { path: `${prices}.default.output_price`, affects: "the cost of requests is unknown" },
  { path: `${prices}.default.cache_read_price|cache_price`, affects: "the cost of cached tokens is unknown" },
  { path: `${prices}.default.cache_write_price`, isOptional: true, affects: "the cost of tokens written to the cache is unknown" },
  { path: `${prices}.default.cache_write_1h_price`, isOptional: true, affects: "the cost of tokens that the cache keeps for an hour is unknown" },
  { path: `${prices}.default.max_prompt_tokens|context_max`, given: hasLongPrices, affects: "from where on a long prompt is dearer is unknown, and the dearer price counts" },
  { path: `${prices}.long_context`, given: hasBoundary, affects: "the cost of long prompts is unknown, and they are not refused for it" },
  { path: `${prices}.long_context.input_price`, affects: "the cost of models with a price for long prompts is unknown" },
  { path: `${prices}.long_context.output_price`, affects: "the cost of models with a price for long prompts is unknown" },
  { path: `${prices}.long_context.cache_read_price|cache_price`, affects: "the cost of cached tokens of long prompts is unknown" },
];

// biome-ignore format: a table
const ofToken: AnswerRow[] = [
  { path: "token", affects: "there is no Copilot token" },
  { path: "expires_at", affects: "when a Copilot token expires is unknown, and it is renewed after 25 minutes" },
  { path: "refresh_in", affects: "when to renew a Copilot token is unknown, and it is renewed before it expires" },
  { path: "endpoints", affects: "the model host of an account is unknown, and the general one is asked" },
  { path: "endpoints.api", affects: "the model host of an account is unknown, and the general one is asked" },
];

// biome-ignore format: a table
const ofUser: AnswerRow[] = [
  { path: "copilot_plan", affects: "the plan of an account is unknown" },
  { path: "endpoints", isOptional: true, affects: "the model host of an account that uses its token directly is unknown" },
  { path: "endpoints.api", isOptional: true, affects: "the model host of an account that uses its token directly is unknown" },
  { path: "quota_snapshots|limited_user_quotas", affects: "the quota of an account is unknown" },
  { path: "limited_user_quotas.chat", affects: "the quota of an account is unknown" },
  { path: "monthly_quotas", given: (user) => "limited_user_quotas" in user, affects: "the size of an account's quota is unknown" },
  { path: "monthly_quotas.chat", affects: "the size of an account's quota is unknown" },
  { path: "quota_reset_date_utc|quota_reset_date|limited_user_reset_date", affects: "when a quota resets is unknown" },
  { path: "token_based_billing", isOptional: true, affects: "whether a quota counts AI credits or premium requests is unknown" },
  { path: premium, affects: "the quota of an account is unknown" },
  { path: "quota_snapshots.chat", isOptional: true, affects: "the quota of chat messages is unknown" },
  { path: `${premium}.entitlement`, affects: "the size of an account's quota is unknown" },
  { path: `${premium}.quota_remaining|remaining|percent_remaining`, affects: "what is left of a quota is unknown" },
  { path: `${premium}.unlimited`, affects: "whether a quota is unlimited is unknown" },
  { path: `${premium}.overage_permitted`, affects: "whether more than the quota may be used is unknown, and it is not" },
  { path: `${premium}.overage_count`, affects: "how much was used beyond the quota is unknown" },
  // Of a seat that draws on a pool the numbers are placeholders, and only this says that the pool is empty.
  { path: `${premium}.has_quota`, given: ({ unlimited, token_based_billing }) => unlimited === true && token_based_billing === true, affects: "whether anything is left of a shared quota is unknown" },
];

/** The headers of successful answers of models. */
const ofAnswers: AnswerRow[] = [
  { path: snapshotHeaders, isOptional: true, isGradual: true, affects: "quotas are not updated by answers" },
];

// biome-ignore format: a table
const ofQuotaHeaders: AnswerRow[] = [
  { path: "ent", affects: "quotas are not updated by answers" },
  { path: "rem|totRem", affects: "what is left of a quota is unknown after an answer" },
  { path: "ov", affects: "how much was used beyond the quota is unknown after an answer" },
  { path: "ovPerm", affects: "whether more than the quota may be used is unknown after an answer, and it is not" },
  { path: "rst", isOptional: true, affects: "when a quota resets is known from the quota endpoint only" },
];

const charge = "what GitHub charges is unknown, and costs are computed from the model list";
const input = "how many tokens prompts have is unknown, and so is their cost";
const output = "how many tokens answers have is unknown, and so is their cost";
const cached = "how many tokens came from the cache is unknown";
const written = "how many tokens were written to the cache is unknown";
const reasoning = "how many tokens were thinking is unknown";

/**
 * What Anthropic's API always states is not optional. Tokens of thinking are left out: chat and messages state them only
 * where the model thought, and no cost depends on them.
 */
// biome-ignore format: a table
export const usageMembers: readonly UsageMember[] = [
  { where: "chat", usage: "input", path: "usage.prompt_tokens", affects: input },
  { where: "chat", usage: "output", path: "usage.completion_tokens", affects: output },
  { where: "chat", usage: "cachedInput", path: "usage.prompt_tokens_details.cached_tokens", isOptional: true, affects: cached },
  { where: "chat", usage: "cacheWrite", path: "usage.prompt_tokens_details.cache_write_tokens|cache_creation_input_tokens", isOptional: true, affects: written },
  { where: "chat", usage: "nanoCredits", path: "copilot_usage.total_nano_aiu", isOptional: true, affects: charge },
  { where: "responses", usage: "input", path: "usage.input_tokens", affects: input },
  { where: "responses", usage: "output", path: "usage.output_tokens", affects: output },
  { where: "responses", usage: "cachedInput", path: "usage.input_tokens_details.cached_tokens", isOptional: true, affects: cached },
  { where: "responses", usage: "cacheWrite", path: "usage.input_tokens_details.cache_write_tokens", isOptional: true, affects: written },
  { where: "responses", usage: "reasoning", path: "usage.output_tokens_details.reasoning_tokens", isOptional: true, affects: reasoning },
  { where: "responses", usage: "nanoCredits", path: "copilot_usage.total_nano_aiu", isOptional: true, affects: charge },
  { where: "messages", usage: "input", path: "usage.input_tokens", affects: input },
  { where: "messages", usage: "output", path: "usage.output_tokens", affects: output },
  { where: "messages", usage: "cachedInput", path: "usage.cache_read_input_tokens", affects: "how many tokens prompts have, and how many came from the cache, is unknown" },
  { where: "messages", usage: "cacheWrite", path: "usage.cache_creation_input_tokens", affects: "how many tokens prompts have, and how many were written to the cache, is unknown" },
  { where: "messages", usage: "nanoCredits", path: "copilot_usage.total_nano_aiu", isOptional: true, affects: charge },
];

const at = (where: AnswerKind, rows: readonly AnswerRow[]): AnswerMember[] =>
  rows.map((row) => {
    const steps = row.path.split(".").map((step) => step.split("|"));
    return { where, ...row, around: steps.slice(0, -1), names: steps.at(-1)! };
  });

export const answerMembers: readonly AnswerMember[] = [
  ...at("models", ofModels),
  ...at("token", ofToken),
  ...at("user", ofUser),
  ...at("answers", ofAnswers),
  ...at("quota headers", ofQuotaHeaders),
];

const objectIn = (around: JsonObject, names: readonly string[]): JsonObject | undefined =>
  names.map((name) => around[name]).find(isObject);

/** Whether the answer has the member; undefined where nothing can be said, because what is around it is missing too. */
export function hasMember(answer: JsonObject, { around, names, given }: AnswerMember): boolean | undefined {
  let object = answer;
  for (const step of around) {
    const inner = objectIn(object, step);
    if (!inner) return undefined;
    object = inner;
  }
  if (given && !given(object, answer)) return undefined;
  for (const name of names) if (object[name] != null) return true;
  return false;
}
