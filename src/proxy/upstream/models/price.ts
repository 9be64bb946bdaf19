import type { Usage } from "../../../dialects/hub/reply";
import { type Cost, isCostUnit } from "../../../lib/money";
import type { Price } from "./price-list";

/** What else a cost depends on. */
export interface CostFacts {
  /** What the plan of the account that serves is counted in, as in its quota. */
  planUnit?: string | undefined;
  /** The reply broke off: its numbers are those of its beginning. */
  isCut?: boolean | undefined;
  /** Numbers that the replies of this model always had. */
  lost?: readonly (keyof Usage)[] | undefined;
}

/**
 * Premium requests by the catalogue's price, or the AI credits that the upstream states, or else those of the catalogue's
 * prices. Of a usage with gaps, the least that it can cost. Where it is not known what the plan is counted in, the price
 * tells the unit: only lists for plans of premium requests price a model by the request alone.
 * @param byPerson Only a person's turn uses premium requests; an agent's follow-up uses none.
 */
export function costOf(price: Price, usage: Partial<Usage>, byPerson: boolean, facts: CostFacts = {}): Cost {
  const { planUnit, isCut, lost = [] } = facts;
  const { units } = price;
  const isByRequest =
    units !== undefined && price.tokens === undefined && (units > 0 || usage.nanoCredits === undefined);
  if (isCostUnit(planUnit) ? planUnit === "premium" : isByRequest)
    return { unit: "premium", amount: units === undefined ? null : byPerson ? Math.round(units * 1e9) : 0 };
  const listed = creditsFor(price, isCut ? { output: 0, ...usage } : usage, isCut ? [...cacheNumbers, ...lost] : lost);
  const amount = usage.nanoCredits ?? listed?.nano ?? null;
  const isOpen = isCut ? amount !== null && !isFree(price) : usage.nanoCredits === undefined && listed?.isLeast;
  return { unit: "credits", amount, ...(isOpen && { isAtLeast: true }) };
}

/** The parts of the input that have prices of their own. */
const cacheNumbers = ["cachedInput", "cacheWrite"] as const;

const isFree = ({ tokens }: Price): boolean => tokens !== undefined && !tokens.input && !tokens.output;

/** The price of the dearest of several models, of which any may serve; unknown if there is none. */
export function dearestOf(models: readonly { price: Price }[]): Price {
  const weightOf = ({ units, tokens }: Price) =>
    tokens ? (tokens.input * 4 + tokens.output) / tokens.per : (units ?? -1);
  const prices = models.map(({ price }) => price).sort((one, other) => weightOf(other) - weightOf(one));
  return { ...prices[0], premium: true };
}

/**
 * @param lost Numbers that the usage lacks though it should have them.
 * @returns Null if it is unknown. `isLeast`: with the numbers that are lost, it may be more.
 */
function creditsFor(
  { tokens, long, unknownAbove = Number.POSITIVE_INFINITY }: Price,
  usage: Partial<Usage>,
  lost: readonly (keyof Usage)[],
): { nano: number; isLeast: boolean } | null {
  if (!tokens || usage.input === undefined || usage.output === undefined) return null;
  if (usage.input > unknownAbove) return null;
  const rate = long && usage.input > long.above ? long : tokens;
  const { cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0 } = usage;
  const fresh = Math.max(0, usage.input - cachedInput - cacheWrite);
  // Each token whose kind is not known counts as the cheapest kind.
  const others = cacheNumbers
    .filter((name) => lost.includes(name) && usage[name] === undefined)
    .map((name) => rate[name] ?? rate.input);
  const counts: [tokens: number, price: number | undefined][] = [
    [fresh, Math.min(rate.input, ...others)],
    [usage.output, rate.output],
    [cachedInput, rate.cachedInput],
    [Math.max(0, cacheWrite - cacheWriteHour), rate.cacheWrite],
    [cacheWriteHour, rate.cacheWriteHour],
  ];
  let credits = 0;
  for (const [count, price] of counts) {
    if (count > 0 && price === undefined) return null;
    credits += count * (price ?? 0);
  }
  const nano = Math.round((credits * 1e9) / tokens.per);
  const isLeast = fresh > 0 && others.some((price) => price !== rate.input);
  return Number.isFinite(nano) ? { nano, isLeast } : null;
}

/**
 * What the cache changed at list prices, in billionths of an AI credit. Null if the price of one of these is unknown.
 * @param cached Tokens read from the cache. @param written Tokens written to it, which may cost more than plain input.
 */
export function cacheSaving({ tokens }: Price, cached: number, written: number): number | null {
  if (cached === 0 && written === 0) return 0;
  const { input, cachedInput = cached === 0 ? 0 : null, cacheWrite = written === 0 ? 0 : null } = tokens ?? {};
  if (input === undefined || cachedInput === null || cacheWrite === null || !tokens) return null;
  const credits = cached * (input - cachedInput) - written * (cacheWrite - input);
  return Math.round((credits * 1e9) / tokens.per);
}
