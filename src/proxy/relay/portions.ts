/** What the row of a request says of what its prompt was made of, and of what changed in it. */
import type { Portion } from "../../books/history/portions";
import type { Usage } from "../../dialects/hub/reply";
import type { Cost } from "../../lib/money";
import { portionsOf } from "../tokens/portions-of";
import type { CachedTurn, CacheWatch, JudgedMiss } from "../upstream/cache-watch";
import type { Price } from "../upstream/models/price-list";
import { type TokenRates, tokenRates } from "../upstream/models/token-rates";
import type { RecordedPrompt } from "./book";

/** What is known of the prompt of a request that has ended. */
export interface EndedPrompt {
  /** Why the cache did not have it; missing if it did. */
  miss?: JudgedMiss | null | undefined;
  /** What that cost, in billionths of an AI credit. */
  lostCost?: number;
  portions?: Portion[];
  /** Tokens up to the last mark for the cache. */
  marked?: number;
}

interface Ended {
  prompt?: RecordedPrompt | undefined;
  /** Final: nothing is said by the numbers of a reply that broke off. */
  usage: Partial<Usage>;
  price: Price | undefined;
  cost: Cost;
  /** The prompt's way through the cache; undefined if it is not known. */
  turn: CachedTurn | undefined;
}

/** To be called once for a request: the next one of its conversation is compared with it. */
export function endedPrompt(watch: CacheWatch, { prompt, usage, price, cost, turn }: Ended): EndedPrompt {
  const { input } = usage;
  if (!prompt || input === undefined) return {};
  const judged = turn && watch.judge(turn);
  const charged = cost.isAtLeast ? null : cost.amount;
  const rates = price && cost.unit === "credits" ? tokenRates(price, { ...usage, input }, charged) : undefined;
  const { portions, marked, sizes } = portionsOf(prompt.measured, { ...usage, input }, rates, judged?.before);
  judged?.keepSizes(sizes);
  const miss = judged?.miss;
  return {
    miss,
    ...(miss && rates && price?.tokens?.cachedInput !== undefined && { lostCost: lostCost(miss.lost, usage, rates) }),
    ...(portions.length > 0 && { portions, marked }),
  };
}

/** What the tokens cost beyond what reading them from the cache would have. */
const lostCost = (tokens: number, { cacheWrite }: Partial<Usage>, rates: TokenRates): number =>
  Math.max(0, Math.round(tokens * ((cacheWrite ? rates.cacheWrite : rates.input) - rates.cachedInput)));
