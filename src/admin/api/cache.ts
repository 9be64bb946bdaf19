/** The upstream's prompt cache in the admin API: what it saved, and which turns were not found in it. */
import { z } from "zod";
import type { NameColumn } from "../../books/history/entry";
import type { Filters, Group } from "../../books/history/history";
import { sum, sumKnown } from "../../lib/money";
import type { Scope } from "../../parts/app";
import { type CacheMiss, cacheMisses } from "../../proxy/upstream/cache-watch";
import { isKnown, lossFields, missSentence, type Prices, pricesOf, sumOf, whatChanged } from "./cache-savings";
import { listRequests } from "./requests";
import { count, maybe, text, time } from "./values";

const sums = {
  request_count: count,
  input_tokens: z.number(),
  cached_tokens: z.number(),
  cached_share: maybe.describe("The cached part of the input, 0 to 1."),
  saved_nano_credits: maybe.describe(
    "Billionths of an AI credit, at list prices: cached input instead of plain input, less what writing to the cache cost. Null without prices: those of the list, or else those that answers stated.",
  ),
  unknown_saving_count: count.describe("Requests without a price: what the cache saved in them is unknown."),
};
const groupSchema = z.object({ name: text, ...sums });

const missSchema = z.object({
  reason: z.enum(cacheMisses),
  changed: z.string().describe("What changed, in words."),
  request_count: count,
  uncached_tokens: z.number().describe("Input of these requests that was not read from the cache."),
  ...lossFields,
});

const missedTurnSchema = z.object({
  request_id: z.string(),
  started_at_ms: time,
  reason: z.enum(cacheMisses),
  changed: z.string().describe("The same in words, with what is known of the change."),
  lost_nano_credits: maybe.describe("What that cost."),
  client_name: text,
  upstream_model: text,
  session: text,
  input_tokens: maybe,
  cached_tokens: maybe,
});

export const cacheReportSchema = z
  .object({
    totals: z.object({ ...sums, ...lossFields }),
    models: z.array(groupSchema),
    clients: z.array(groupSchema),
    sessions: z.array(groupSchema).describe("The beginning of a hash of each session; those with the most input."),
    misses: z.array(missSchema).describe("The turns that were not found, by reason."),
    turns: z.array(missedTurnSchema).describe("The newest of them."),
  })
  .meta({ id: "CacheReport" });

export type CacheReport = z.output<typeof cacheReportSchema>;
export type CacheGroup = z.output<typeof groupSchema>;
type MissedTurn = z.output<typeof missedTurnSchema>;

const maxSessions = 20;
const maxTurns = 20;

/** @param filters The period. */
export async function cacheReport(app: Scope, filters: Filters): Promise<CacheReport> {
  const { history } = app;
  const prices = await pricesOf(app);
  const models = await history.statistics(filters, ["upstream_model"]);
  const clients = await history.statistics(filters, ["client_name", "upstream_model"]);
  const sessions = await history.largestSessions(filters, maxSessions);
  const missed = await history.statistics(filters, ["cache_miss", "upstream_model"]);
  const misses = missesIn(missed.groups);
  return {
    totals: {
      ...sumOf(models.groups, prices),
      lost_nano_credits: sumKnown(misses.map((miss) => miss.lost_nano_credits)),
      unknown_loss_count: sum(misses.map((miss) => miss.unknown_loss_count)),
    },
    models: groupsBy("upstream_model", models.groups, prices),
    clients: groupsBy("client_name", clients.groups, prices),
    sessions: groupsBy("session", sessions, prices)
      .filter(({ name }) => name !== null)
      .slice(0, maxSessions),
    misses,
    turns: await newestTurns(app, filters, misses),
  };
}

function groupsBy(column: NameColumn, groups: Group[], prices: Prices): CacheGroup[] {
  const byName = Map.groupBy(groups.filter(isKnown), ({ key }) => key[column] ?? null);
  return [...byName]
    .map(([name, ofName]) => ({ name, ...sumOf(ofName, prices) }))
    .sort((one, other) => other.input_tokens - one.input_tokens);
}

function missesIn(groups: Group[]): CacheReport["misses"] {
  return cacheMisses
    .map((reason) => {
      const missed = groups.filter(({ key }) => key.cache_miss === reason);
      const uncached = (group: Group) => Math.max(0, (group.input_tokens ?? 0) - (group.cached_tokens ?? 0));
      return {
        reason,
        changed: whatChanged[reason],
        request_count: sum(missed.map((group) => group.request_count)),
        uncached_tokens: sum(missed.map(uncached)),
        lost_nano_credits: sumKnown(missed.map((group) => group.cache_lost_cost)),
        unknown_loss_count: sum(missed.map((group) => group.unknown.cache_lost_cost)),
      };
    })
    .filter((miss) => miss.request_count > 0)
    .sort((one, other) => other.uncached_tokens - one.uncached_tokens);
}

async function newestTurns(app: Scope, filters: Filters, misses: { reason: CacheMiss }[]): Promise<MissedTurn[]> {
  const turns = await Promise.all(
    misses.map(async ({ reason }) => {
      const { items } = await listRequests(app, { ...filters, cache_miss: reason }, maxTurns);
      return items.map((item) => ({
        request_id: item.request_id,
        started_at_ms: item.started_at_ms,
        reason,
        changed: missSentence(item) ?? whatChanged[reason],
        lost_nano_credits: item.cache_lost_cost,
        client_name: item.client_name,
        upstream_model: item.upstream_model,
        session: item.session,
        input_tokens: item.input_tokens,
        cached_tokens: item.cached_tokens,
      }));
    }),
  );
  return turns
    .flat()
    .sort((one, other) => other.started_at_ms - one.started_at_ms)
    .slice(0, maxTurns);
}
