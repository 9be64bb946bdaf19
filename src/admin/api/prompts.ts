/** What prompts came to in the admin API, and why: made of sums alone, because no content is kept. */
import { z } from "zod";
import { requestKinds } from "../../books/history/entry";
import type { Filters, PromptPart, PromptSums } from "../../books/history/history";
import type { PromptOrder } from "../../books/history/prompts";
import { noTotals, type Totals } from "../../books/history/totals";
import { costFields } from "../../lib/cost-fields";
import { percent, plural, span } from "../../lib/format";
import { addedCost, amountsOf, byCost, type Costs, costInWords, isUnknown, sum, sumKnown } from "../../lib/money";
import type { Scope } from "../../parts/app";
import type { CacheMiss } from "../../proxy/upstream/cache-watch";
import { lossFields } from "./cache-savings";
import { count, maybe, text, time } from "./values";

const requests = { request_count: count, ...costFields() };

const partSchema = z.object({
  kind: z.enum(requestKinds).nullable(),
  agent_type: text.describe("The client's name for a kind of subagent."),
  ...requests,
});

const promptSchema = z
  .object({
    prompt: z.string().describe("The beginning of a hash of the client's id: a filter of requests."),
    started_at_ms: time,
    duration_ms: count.describe("From the first request's start to the last one's end."),
    client_name: text,
    project: text,
    session: text,
    key_name: text,
    member: text,
    models: z.array(z.string()),
    ...requests,
    unknown_cost_count: count.describe("Requests of unknown cost."),
    input_tokens: maybe,
    output_tokens: maybe,
    cached_tokens: maybe,
    parts: z.array(partSchema).describe("What of it went where, the largest first. They add up to the whole."),
    cold: z
      .object({
        request_count: count,
        idle_ms: maybe.describe("How long the cache had waited, if it had gone cold."),
        ...lossFields,
      })
      .describe("The turns that were not found in the cache."),
    failed: z.object({ ...requests, retry_count: count.describe("Further calls for requests, failed or not.") }),
    why: z.string().describe("Its largest reasons, in a sentence."),
  })
  .meta({ id: "Prompt" });
export type Prompt = z.output<typeof promptSchema>;

export const promptPageSchema = z.object({
  items: z.array(promptSchema),
  next_cursor_id: count.nullable(),
  has_more: z.boolean(),
  with_prompt: z
    .object(requests)
    .describe("All matching requests that belong to a prompt, on whichever page it stands."),
  without_prompt: z
    .object(requests)
    .describe("Matching requests without a prompt in their session: what they belong to is unknown."),
});

export async function listPrompts(
  app: Scope,
  filters: Filters,
  limit: number,
  cursor?: number,
  order?: PromptOrder,
): Promise<z.output<typeof promptPageSchema>> {
  const [page, own, others] = await Promise.all([
    app.history.prompts(filters, limit, cursor, order),
    app.history.totals({ ...filters, has_prompt: true }),
    // Of one prompt there is nothing else to add up.
    filters.prompt ? noTotals() : app.history.totals({ ...filters, has_prompt: false }),
  ]);
  const spent = ({ request_count, cost, cost_at_least }: Totals) => ({ request_count, cost, cost_at_least });
  return { ...page, items: page.items.map(promptOf), with_prompt: spent(own), without_prompt: spent(others) };
}

/** What missing the cache cost; and of how many of these requests that is unknown. */
const lossOf = (parts: PromptPart[]) => ({
  lost_nano_credits: sumKnown(parts.map(({ cache_lost_cost }) => cache_lost_cost)),
  unknown_loss_count: sum(parts.map(({ unknown_loss_count }) => unknown_loss_count)),
});

function promptOf({ parts, started_at_ms, ended_at_ms, ...names }: PromptSums): Prompt {
  const cold = parts.filter((part) => part.cache_miss !== null);
  const byKind = Map.groupBy(parts, ({ kind, agent_type }) => `${kind} ${agent_type}`);
  const costs = [...byKind.values()].map((alike) => ({
    kind: alike[0]!.kind,
    agent_type: alike[0]!.agent_type,
    ...costOf(alike),
  }));
  const failed = parts.filter((part) => part.failed);
  const prompt = {
    ...names,
    started_at_ms,
    duration_ms: ended_at_ms - started_at_ms,
    models: [...new Set(parts.flatMap(({ upstream_model }) => upstream_model ?? []))].sort(),
    ...costOf(parts),
    unknown_cost_count: sum(parts.map(({ unknown_cost_count }) => unknown_cost_count)),
    input_tokens: added(parts, "input_tokens"),
    output_tokens: added(parts, "output_tokens"),
    cached_tokens: added(parts, "cached_tokens"),
    parts: costs.sort((one, other) => byCost(one, other) || other.request_count - one.request_count),
    cold: {
      request_count: requestsIn(cold),
      idle_ms: cold.reduce<number | null>((most, part) => largest(most, part.cache_idle_ms), null),
      ...lossOf(cold),
    },
    failed: { ...costOf(failed), retry_count: sum(parts.map((part) => part.retry_count)) },
  };
  return { ...prompt, why: whyOf(prompt, parts) };
}

const costOf = (parts: PromptPart[]) => ({
  request_count: requestsIn(parts),
  ...addedCost(parts),
});
const requestsIn = (parts: PromptPart[]) => sum(parts.map(({ request_count }) => request_count));
const added = (parts: PromptPart[], name: `${string}_tokens` & keyof PromptPart) =>
  sumKnown(parts.map((part) => part[name]));
const largest = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

/** A share that a sentence does not mention. */
const leastShare = 0.05;
const maxClauses = 3;

/** The parts by their share, and what of them was lost without the cache or failed. */
function whyOf(prompt: Omit<Prompt, "why">, parts: PromptPart[]): string {
  if (isUnknown(prompt)) return "What it cost is not known.";
  // Of a cost in two units, the parts of the first.
  const [unit, total] = amountsOf(prompt)[0]!;
  if (total === 0) return "It cost nothing.";
  const amountOf = ({ cost }: Pick<Costs, "cost">) => cost[unit] ?? 0;
  const amount = (costs: Costs) => costInWords({ ...costs, cost: { [unit]: amountOf(costs) } });
  const shareOf = (costs: Costs) => amountOf(costs) / total;
  const reasons = prompt.parts.map((part) => {
    const share = shareOf(part);
    return { share, words: `${share === 1 ? "all of it" : percent(share)} ${placeOf(part)}` };
  });
  const missed = unit === "credits" ? parts.filter((part) => part.cache_miss !== null) : [];
  for (const ofReason of Map.groupBy(missed, (part) => part.cache_miss).values()) {
    const [dearest] = ofReason.toSorted((one, other) => (other.cache_lost_cost ?? 0) - (one.cache_lost_cost ?? 0));
    const { lost_nano_credits, unknown_loss_count } = lossOf(ofReason);
    const cost = { cost: { credits: lost_nano_credits ?? 0 }, cost_at_least: unknown_loss_count > 0 };
    reasons.push({ share: shareOf(cost), words: `${amount(cost)} because ${coldReason(dearest!)}` });
  }
  reasons.push({
    share: shareOf(prompt.failed),
    words: `${amount(prompt.failed)} in ${plural(prompt.failed.request_count, "request")} that failed`,
  });
  const said = reasons
    .sort((one, other) => other.share - one.share)
    .filter(({ share }, at) => at === 0 || share >= leastShare)
    .slice(0, maxClauses)
    .map(({ words }) => words)
    .join("; ");
  return `${said[0]!.toUpperCase()}${said.slice(1)}.`;
}

type Part = Prompt["parts"][number];

const places: Record<NonNullable<Part["kind"]>, (part: Part) => string> = {
  main: () => "in the conversation itself",
  subagent: ({ agent_type, request_count }) =>
    `in ${agent_type === null ? "" : `${agent_type} `}subagents (${plural(request_count, "request")})`,
  check: ({ request_count }) => `in auto mode’s checks (${plural(request_count, "request")})`,
  title: () => "in titles",
  compaction: ({ request_count }) => `in ${request_count === 1 ? "a compaction" : `${request_count} compactions`}`,
  auxiliary: () => "in the client's own requests beside the conversation",
  search: ({ request_count }) => `in ${plural(request_count, "search", "searches")}`,
};
const placeOf = (part: Part): string => (part.kind ? places[part.kind](part) : "in requests of unknown kind");

const coldReasons: Partial<Record<CacheMiss, string>> = {
  model: "the model changed",
  account: "another account served",
  tools: "the tools changed",
  system: "the system prompt changed",
  rewritten: "a message was rewritten",
  shortened: "the conversation became shorter",
};

function coldReason({ cache_miss, cache_idle_ms }: PromptPart): string {
  if (cache_idle_ms !== null) return `the cache had gone cold after ${span(cache_idle_ms)}`;
  return coldReasons[cache_miss as CacheMiss] ?? "the cache did not have the prompt";
}
