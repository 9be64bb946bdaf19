import type { Usage } from "../../dialects/hub/reply";
import type { Price } from "./price-list";

/** The cost of one request, in the units that are known. */
export interface Cost {
  /** Billionths of an AI credit (one credit is 0.01 USD); null when unknown. */
  nanoCredits: number | null;
  /** Premium requests; null if unknown, or if the model is not billed by them. */
  premiumUnits: number | null;
  /** The credits are at least these: not all that is charged for is known. */
  isAtLeast?: true;
}

/** What is missing in the usage of a request, though it is charged for. */
export interface Gaps {
  /** The reply broke off: its numbers are those of its beginning. */
  isCut?: boolean | undefined;
  /** Numbers that the replies of this model always had. */
  lost?: readonly (keyof Usage)[] | undefined;
}

/**
 * The charge that the upstream reports, or else the catalogue's prices. Of a usage with gaps, the least that it can cost.
 * @param byPerson Only a person's turn uses premium units; an agent's follow-up uses none.
 */
export function costOf(price: Price, usage: Partial<Usage>, byPerson: boolean, gaps: Gaps = {}): Cost {
  const { isCut, lost = [] } = gaps;
  const listed = creditsFor(price, isCut ? { output: 0, ...usage } : usage, isCut ? [...cacheNumbers, ...lost] : lost);
  const nanoCredits = usage.nanoCredits ?? listed?.nano ?? null;
  const isOpen = isCut ? nanoCredits !== null && !isFree(price) : usage.nanoCredits === undefined && listed?.isLeast;
  return {
    nanoCredits,
    premiumUnits: price.units === undefined ? null : byPerson ? price.units : 0,
    ...(isOpen && { isAtLeast: true }),
  };
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
