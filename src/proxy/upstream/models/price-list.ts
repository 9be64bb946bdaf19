/** The price of a model as the model list states it. What it does not state is unknown: never zero, and never another price. */

import { countIn } from "../../../dialects/hub/json";
import { decimalIn, isObject } from "../../../lib/json";

/** AI credits for a number of tokens of each kind. A kind whose price is not stated is undefined. */
export interface TokenPrice {
  input: number;
  output: number;
  cachedInput: number | undefined;
  cacheWrite: number | undefined;
  /** For tokens that the cache keeps for an hour. */
  cacheWriteHour: number | undefined;
}

/**
 * What a model costs. Two ways of billing exist: units per request a person makes (`units`), and AI credits per number of
 * tokens (`tokens`). If a model states neither, its price is unknown.
 */
export interface Price {
  /** It uses the account's quota. False only if the list says that the model is free. */
  premium: boolean;
  /** Premium units of one request. */
  units?: number;
  /** AI credits per `per` tokens. */
  tokens?: TokenPrice & { per: number };
  /** The same for prompts of more than `above` tokens. */
  long?: TokenPrice & { above: number };
  /** There are prices for long prompts, but not from where on: `tokens` has the dearer of the two. */
  isBoundaryUnknown?: true;
  /** Prices hold up to so many tokens of prompt, and the list does not say what longer ones cost. */
  unknownAbove?: number;
  promotion?: Promotion;
}

/** A discount for a time. Whether the prices contain it already is not documented. */
interface Promotion {
  /** Percent. */
  discount?: number;
  /** ms timestamp */
  endsAt?: number;
  message?: string;
}

/** @param isLongFromBoundary The dearer price begins with a prompt of as many tokens as the boundary. */
export function readPrice(billing: unknown, isLongFromBoundary: boolean): Price {
  if (!isObject(billing)) return { premium: true };
  const multiplier = decimalIn(billing.multiplier);
  const byTokens = readTokenPrices(billing.token_prices, isLongFromBoundary);
  const { tokens } = byTokens;
  const isPriced = tokens !== undefined && (tokens.input > 0 || tokens.output > 0);
  const isStated = "is_premium" in billing;
  const isFree = !isPriced && (isStated ? billing.is_premium === false : tokens !== undefined || multiplier === 0);
  return {
    premium: !isFree,
    units: multiplier || ((isStated || multiplier === 0) && isFree ? 0 : undefined),
    ...byTokens,
    promotion: readPromotion(billing.promo),
  };
}

function readTokenPrices(
  prices: unknown,
  isLongFromBoundary: boolean,
): Pick<Price, "tokens" | "long" | "isBoundaryUnknown" | "unknownAbove"> {
  if (!isObject(prices)) return {};
  const size = decimalIn(prices.batch_size);
  // Seen in the list of 2026-06: a free model has a batch of 0 tokens, and zeros as prices.
  if (size === 0) return { tokens: { per: 1_000_000, ...freeOfCharge } };
  // Every list states it: without it, a price could be one for any number of tokens.
  if (size === undefined) return {};
  const per = size;
  const base = readTier(prices.default);
  if (!base) return {};
  const boundary = boundaryOf(prices.default);
  if (prices.long_context == null) {
    const end = boundary && { unknownAbove: boundary - Number(isLongFromBoundary) };
    return { tokens: { per, ...base }, ...end };
  }
  const long = readTier(prices.long_context);
  // What a prompt costs would depend on a guess.
  if (!long) return {};
  if (boundary) return { tokens: { per, ...base }, long: { above: boundary - Number(isLongFromBoundary), ...long } };
  const dearer = {
    input: Math.max(base.input, long.input),
    output: Math.max(base.output, long.output),
    cachedInput: dearerOf(base.cachedInput, long.cachedInput),
    cacheWrite: dearerOf(base.cacheWrite, long.cacheWrite),
    cacheWriteHour: dearerOf(base.cacheWriteHour, long.cacheWriteHour),
  };
  const isSame = tokenKinds.every((kind) => base[kind] === long[kind]);
  return { tokens: { per, ...dearer }, ...(isSame ? {} : { isBoundaryUnknown: true }) };
}

const tokenKinds = ["input", "output", "cachedInput", "cacheWrite", "cacheWriteHour"] as const;

const freeOfCharge: TokenPrice = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0, cacheWriteHour: 0 };

/** The names of 2026-08, and after them those of 2026-06. */
function readTier(value: unknown): TokenPrice | undefined {
  if (!isObject(value)) return undefined;
  const input = decimalIn(value.input_price);
  const output = decimalIn(value.output_price);
  if (input === undefined || output === undefined) return undefined;
  if (input === 0 && output === 0) return freeOfCharge;
  return {
    input,
    output,
    cachedInput: decimalIn(value.cache_read_price) ?? decimalIn(value.cache_price),
    cacheWrite: decimalIn(value.cache_write_price),
    cacheWriteHour: decimalIn(value.cache_write_1h_price),
  };
}

/** Tokens of prompt up to which the default prices hold: `max_prompt_tokens` since 2026-08, before that `context_max`. */
const boundaryOf = (tier: unknown): number | undefined =>
  isObject(tier) ? (countIn(tier.max_prompt_tokens) ?? countIn(tier.context_max)) || undefined : undefined;

const dearerOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : Math.max(one, other);

/** Whether a prompt of `above` tokens or fewer is cheaper: some models list a second price that is the same. */
export function isLongDearer({ tokens, long }: Price): boolean {
  if (!tokens || !long) return false;
  for (const kind of tokenKinds) if ((long[kind] ?? 0) > (tokens[kind] ?? 0)) return true;
  return false;
}

function readPromotion(promo: unknown): Promotion | undefined {
  if (!isObject(promo)) return undefined;
  const endsAt = typeof promo.ends_at === "string" ? Date.parse(promo.ends_at) : Number.NaN;
  return {
    discount: decimalIn(promo.discount_percent),
    endsAt: Number.isNaN(endsAt) ? undefined : endsAt,
    message: typeof promo.message === "string" ? promo.message.slice(0, 256) : undefined,
  };
}
