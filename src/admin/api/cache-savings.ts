/** What the upstream's prompt cache saved, and why it did not have a prompt. */
import type { Group } from "../../books/history/history";
import { span } from "../../lib/format";
import { entryOf } from "../../lib/json";
import { addedCacheable, cachedShareOf, sum, sumKnown } from "../../lib/money";
import type { Scope } from "../../parts/app";
import type { CacheMiss } from "../../proxy/upstream/cache-watch";
import { cacheSaving } from "../../proxy/upstream/models/price";
import type { Price } from "../../proxy/upstream/models/price-list";
import type { ShownEntry } from "./requests";
import { count, maybe } from "./values";

/** Why the upstream's cache did not have a turn's prompt, as a sentence. */
export const whatChanged: Record<CacheMiss, string> = {
  model: "The model changed.",
  account: "Another account served.",
  tools: "The tools changed.",
  system: "The system prompt changed.",
  expired: "More time passed than the cache keeps a prompt, but less than an hour.",
  expired_long: "More than an hour passed.",
  rewritten: "A message of the conversation was rewritten.",
  shortened: "The conversation became shorter.",
  no_key: "The request had no cache key.",
  no_marks: "The request had no cache marks.",
  unknown: "Nothing at the beginning changed.",
};

/** The same of one request, with what is known of the change: `The tools changed: mcp__playwright was added.` */
export function missSentence({ cache_miss, cache_change, cache_idle_ms }: MissOfRow): string | undefined {
  const general = entryOf(whatChanged, cache_miss ?? "");
  if (general === undefined) return undefined;
  const { added, removed, changed, message, of, model } = cache_change ?? {};
  if (cache_idle_ms !== null) return `It came ${span(cache_idle_ms)} after the request before: too late for the cache.`;
  if (model !== undefined) return `The model changed: ${model} had it.`;
  if (cache_miss === "rewritten") return `Message ${message} of ${of} was rewritten.`;
  if (cache_miss === "shortened" && message !== undefined)
    return `The conversation became shorter: message ${message} of ${of} was rewritten.`;
  if (cache_miss !== "tools") return general;
  const parts = Object.entries({ added, removed, changed }).flatMap(([how, names]) =>
    names ? `${listed(names)} ${names.length === 1 ? "was" : "were"} ${how}` : [],
  );
  return `The tools changed: ${parts.join("; ") || "they stand in another order"}.`;
}

type MissOfRow = Pick<ShownEntry, "cache_miss" | "cache_change" | "cache_idle_ms">;

/** `a`, `a and b`, `a, b and c` */
const listed = (names: readonly string[]): string =>
  [names.slice(0, -1).map(quote).join(", "), quote(names.at(-1)!)].filter((part) => part !== "").join(" and ");
const quote = (name: string): string => `\`${name}\``;

/** What the cache saved at list prices, in billionths of a credit; null if no price is known. @param groups By model, and by anything else. */
export const savedByCache = async (app: Scope, groups: Group[]): Promise<Saving> => sumOf(groups, await pricesOf(app));

/** What the cache saved, and in how many requests that is unknown. */
export type Saving = Pick<ReturnType<typeof sumOf>, "saved_nano_credits" | "unknown_saving_count">;

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
  const savings = known.map((group) => ({
    request_count: group.request_count - group.unknown.cached_tokens,
    saved: savingOf(group, prices, group.cached_tokens ?? 0, group.cache_write_tokens ?? 0),
  }));
  return {
    request_count: sum(savings.map(({ request_count }) => request_count)),
    ...cacheable,
    cached_share: cachedShareOf(cacheable),
    saved_nano_credits: sumKnown(savings.map(({ saved }) => saved)),
    unknown_saving_count: sum(savings.map(({ saved, request_count }) => (saved === null ? request_count : 0))),
  };
}

export const lossFields = {
  lost_nano_credits: maybe.describe("What that cost; of the turns where it is known."),
  unknown_loss_count: count.describe("The turns where it is unknown."),
};

/** Null if the model's price is unknown. */
function savingOf({ key }: Pick<Group, "key">, prices: Prices, cached: number, written: number): number | null {
  if (cached === 0 && written === 0) return 0;
  const price = prices.get(key.upstream_model ?? "");
  return price ? cacheSaving(price, cached, written) : null;
}
