/**
 * Money and shares: how costs are added, which of them are unknown, and how they are said. Every page, command, file and
 * answer that shows a cost or a share takes it from here.
 */
import { formatCredits, formatUnits } from "./format";

/** What requests cost, in both units, which are never added. Null: in this unit nothing is known. */
export interface Cost {
  /** Billionths of an AI credit. */
  nano_credits: number | null;
  /** Premium requests. */
  premium_units: number | null;
  /** It is at least this: the cost of a request is known in part only, or that of some of several requests not at all. */
  cost_at_least: boolean;
}

/** Of the known values. */
export const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

/** The same; null if no value is known. */
export const sumKnown = (values: readonly (number | null)[]): number | null =>
  values.some((value) => value !== null) ? sum(values) : null;

/** Nothing is known of the cost. A request that is billed in one unit has none in the other, and that is not unknown. */
export const isUnknown = ({ nano_credits, premium_units }: Pick<Cost, "nano_credits" | "premium_units">): boolean =>
  nano_credits === null && premium_units === null;

/** Premium requests are summed in millionths. */
const millionths = (units: number | null) => units && Math.round(units * 1e6) / 1e6;

export const addedCost = (costs: readonly Cost[]): Cost => ({
  nano_credits: sumKnown(costs.map(({ nano_credits }) => nano_credits)),
  premium_units: millionths(sumKnown(costs.map(({ premium_units }) => premium_units))),
  cost_at_least: costs.some((cost) => cost.cost_at_least || isUnknown(cost)),
});

/** Marks what is at least so much, everywhere by the same sign: `≥ 4.21`. */
export const marked = (amount: string, { cost_at_least }: Pick<Cost, "cost_at_least">): string =>
  cost_at_least ? `≥ ${amount}` : amount;

/** The units that a cost is shown in: one that was not used is left out, although a request that was refused here costs 0 in both. */
export function unitsOf({ nano_credits, premium_units }: Omit<Cost, "cost_at_least">): {
  credits: boolean;
  premium: boolean;
} {
  const premium = (premium_units ?? 0) > 0 || (nano_credits === null && premium_units !== null);
  return { credits: (nano_credits ?? 0) > 0 || !premium, premium };
}

/** `4.21 AI credits, 2 premium requests`, `≥ 4.21 AI credits`, `nothing`; undefined if the cost is unknown. */
export const costInWords = (cost: Cost): string | undefined =>
  inWords(cost, ", ", cost.cost_at_least ? "0" : "nothing", {
    credits: (nano) => `${formatCredits(nano)} AI ${nano === 1e9 ? "credit" : "credits"}`,
    premium: (units) => `${formatUnits(units)} premium ${units === 1 ? "request" : "requests"}`,
  });

/** `4.21 cr + 2 pr`, `≥ 4.21 cr`, `0 cr`; undefined if the cost is unknown. */
export const costInBrief = (cost: Cost): string | undefined =>
  inWords(cost, " + ", unitsOf(cost).credits ? "0 cr" : "0 pr", {
    credits: (nano) => `${formatCredits(nano)} cr`,
    premium: (units) => `${formatUnits(units)} pr`,
  });

interface UnitWords {
  credits(nano: number): string;
  premium(units: number): string;
}

function inWords(cost: Cost, between: string, nothing: string, words: UnitWords): string | undefined {
  if (isUnknown(cost)) return undefined;
  const { nano_credits: nano, premium_units: units } = cost;
  const amounts = [nano ? words.credits(nano) : "", units ? words.premium(units) : ""];
  return marked(amounts.filter(Boolean).join(between) || nothing, cost);
}

/** The tokens of requests of which both the input and its cached part are known. */
export interface CacheableTokens {
  input_tokens: number;
  cached_tokens: number;
}

export const addedCacheable = (tokens: readonly CacheableTokens[]): CacheableTokens => ({
  input_tokens: sum(tokens.map(({ input_tokens }) => input_tokens)),
  cached_tokens: sum(tokens.map(({ cached_tokens }) => cached_tokens)),
});

/** The cached part of the input, 0 … 1; null where there is no input. */
export const cachedShareOf = ({ input_tokens, cached_tokens }: CacheableTokens): number | null =>
  input_tokens === 0 ? null : cached_tokens / input_tokens;
