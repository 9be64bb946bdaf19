import type { Usage } from "../dialects/hub/reply";
import type { Price } from "./model";

/** The cost of one request, in the units that are known. */
export interface Cost {
  /** Billionths of an AI credit (one credit is 0.01 USD); null when unknown. */
  nanoCredits: number | null;
  /** Premium requests; null if unknown, or if the model is not billed by them. */
  premiumUnits: number | null;
}

/**
 * The charge that the upstream reports, or else the catalogue's prices.
 * @param byPerson Only a person's turn uses premium units; an agent's follow-up uses none.
 */
export function costOf(price: Price, usage: Partial<Usage>, byPerson: boolean): Cost {
  return {
    nanoCredits: usage.nanoCredits ?? creditsFor(price, usage),
    premiumUnits: price.units === undefined ? null : byPerson ? price.units : 0,
  };
}

function creditsFor(price: Price, usage: Partial<Usage>): number | null {
  if (!price.tokens || usage.input === undefined || usage.output === undefined) return null;
  const rate = price.long && usage.input > price.long.above ? price.long : price.tokens;
  const cached = usage.cachedInput ?? 0;
  const written = usage.cacheWrite ?? 0;
  const plain = Math.max(0, usage.input - cached - written);
  const credits =
    plain * rate.input + cached * rate.cachedInput + written * rate.cacheWrite + usage.output * rate.output;
  return Math.round((credits / price.tokens.per) * 1e9);
}

/**
 * What the cache changed at list prices, in billionths of an AI credit. Null if the model has no price for tokens.
 * @param cached Tokens read from the cache. @param written Tokens written to it, which may cost more than plain input.
 */
export function cacheSaving({ tokens }: Price, cached: number, written: number): number | null {
  if (!tokens) return null;
  const credits = cached * (tokens.input - tokens.cachedInput) - written * (tokens.cacheWrite - tokens.input);
  return Math.round((credits / tokens.per) * 1e9);
}
