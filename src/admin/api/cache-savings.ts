/** What the upstream's prompt cache saved, and why it did not have a prompt. */
import type { Group } from "../../books/history/history";
import { addedCacheable, cachedShareOf, sum, sumKnown } from "../../lib/money";
import type { Scope } from "../../parts/app";
import type { CacheMiss } from "../../proxy/upstream/cache-watch";
import { cacheSaving } from "../../proxy/upstream/models/price";
import type { Price } from "../../proxy/upstream/models/price-list";

/** Why the upstream's cache did not have a turn's prompt, as a sentence. */
export const whatChanged: Record<CacheMiss, string> = {
  model: "The model changed.",
  account: "Another account served.",
  tools: "The tools changed.",
  system: "The system prompt changed.",
  expired: "More time passed than the cache keeps a prompt, but less than an hour.",
  expired_long: "More than an hour passed.",
  shortened: "The conversation became shorter.",
  no_key: "The request had no cache key.",
  no_marks: "The request had no cache marks.",
  unknown: "Nothing at the beginning changed.",
};

/** What the cache saved at list prices, in billionths of a credit; null if no price is known. @param groups By model, and by anything else. */
export async function savedByCache(app: Scope, groups: Group[]): Promise<number | null> {
  return sumOf(groups, await pricesOf(app)).saved_nano_credits;
}

export type Prices = ReadonlyMap<string, Price>;

/** None if the list of models cannot be read: shares are known without it. */
export async function pricesOf({ billedPrices, catalogue }: Scope): Promise<Prices> {
  const models = await catalogue.models().catch(() => []);
  return new Map(models.map((model) => [model.id, billedPrices.priceOf(model)]));
}

/** Only requests whose cached input is known count: errors and embeddings say nothing of it. */
export const isKnown = (group: Group) => group.cached_share !== null;

export function sumOf(groups: Group[], prices: Prices) {
  const known = groups.filter(isKnown);
  const cacheable = addedCacheable(known.map((group) => group.cacheable));
  return {
    request_count: sum(known.map((group) => group.request_count - group.unknown.cached_tokens)),
    ...cacheable,
    cached_share: cachedShareOf(cacheable),
    saved_nano_credits: sumKnown(
      known.map((group) => savingOf(group, prices, group.cached_tokens ?? 0, group.cache_write_tokens ?? 0)),
    ),
  };
}

/** Null if the model's price is unknown. */
export function savingOf({ key }: Pick<Group, "key">, prices: Prices, cached: number, written: number): number | null {
  if (cached === 0 && written === 0) return 0;
  const price = prices.get(key.upstream_model ?? "");
  return price ? cacheSaving(price, cached, written) : null;
}
