/** What the row of a request says of what its prompt was made of, and of what changed in it. */
import type { Portion } from "../../books/history/portions";
import type { Usage } from "../../dialects/hub/reply";
import type { Cost } from "../../lib/money";
import { portionsOf } from "../tokens/portions-of";
import type { CachedTurn, CacheWatch, JudgedMiss } from "../upstream/cache-watch";
import { costOf } from "../upstream/models/price";
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
  const surcharge = rates && price && surchargeOf(price, { ...usage, input }, charged);
  if (surcharge) portions.push(surcharge);
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

/** What the dearer rate of a long prompt has added; undefined where it has added nothing. */
function surchargeOf(
  price: Price,
  usage: Partial<Usage> & Pick<Usage, "input">,
  charged: number | null,
): Portion | undefined {
  const { long, ...usual } = price;
  if (!long) return undefined;
  const { nanoCredits: _, ...counted } = usage;
  const listed = (at: Price) => costOf(at, counted, false, { planUnit: "credits" }).amount;
  const [dear, plain] = [listed(price), listed(usual)];
  if (dear === null || plain === null || dear <= plain) return undefined;
  // A discount applies to it as to all.
  const cost = Math.round((dear - plain) * (charged === null ? 1 : charged / dear));
  return { kind: "surcharge", tool: null, count: 1, tokens: 0, cached: 0, cost, grown: null };
}
