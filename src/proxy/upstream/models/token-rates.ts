/** What one token of each kind cost in a request, by the price of its model and what the request came to. */
import type { Usage } from "../../../dialects/hub/reply";
import type { Price } from "./price-list";

/** Billionths of an AI credit for a token. */
export interface TokenRates {
  /** Input that was neither read from the cache nor written to it. */
  input: number;
  cachedInput: number;
  /** Input that was written to the cache. */
  cacheWrite: number;
  output: number;
}

/**
 * Undefined where the price of a kind is unknown that the request has.
 * @param nanoCredits What the request cost: where that is not what the list says, all kinds cost as much more or less.
 */
export function tokenRates(
  { tokens, long }: Price,
  usage: Partial<Usage> & Pick<Usage, "input">,
  nanoCredits?: number | null,
): TokenRates | undefined {
  if (!tokens) return undefined;
  const price = long && usage.input > long.above ? long : tokens;
  const { cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, output = 0 } = usage;
  const written = [
    [price.cacheWrite, cacheWrite - cacheWriteHour],
    [price.cacheWriteHour, cacheWriteHour],
  ] as const;
  const isKnown =
    (cachedInput === 0 || price.cachedInput !== undefined) &&
    written.every(([rate, count]) => count === 0 || rate !== undefined);
  if (!isKnown) return undefined;
  const nano = (credits: number) => (credits * 1e9) / tokens.per;
  const rates = {
    input: nano(price.input),
    cachedInput: nano(price.cachedInput ?? price.input),
    cacheWrite: cacheWrite === 0 ? nano(price.input) : nano(costOf(written) / cacheWrite),
    output: nano(price.output),
  };
  if (nanoCredits == null) return rates;
  const fresh = Math.max(0, usage.input - cachedInput - cacheWrite);
  const listed =
    fresh * rates.input + cachedInput * rates.cachedInput + cacheWrite * rates.cacheWrite + output * rates.output;
  const factor = listed > 0 ? nanoCredits / listed : 1;
  return {
    input: rates.input * factor,
    cachedInput: rates.cachedInput * factor,
    cacheWrite: rates.cacheWrite * factor,
    output: rates.output * factor,
  };
}

const costOf = (counts: readonly (readonly [rate: number | undefined, count: number])[]): number =>
  counts.reduce((sum, [rate, count]) => sum + (rate === undefined ? 0 : rate * count), 0);
