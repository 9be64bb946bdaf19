/**
 * What changing one thing would have saved in the last two weeks, from the own history and the list's prices. Advice that is worth
 * little is none: it has to save a twentieth of all, and a dollar.
 */
import { z } from "zod";
import type { Filters, Group } from "../../books/history/history";
import type { PortionSum } from "../../books/history/portions";
import { idFromClaudeCode } from "../../clients/claude-code-names";
import { toolOf } from "../../clients/index";
import { dayMs, formatAmount, percent, plural } from "../../lib/format";
import { sum } from "../../lib/money";
import type { Scope } from "../../parts/app";
import type { Model } from "../../proxy/upstream/models/model";
import { findListed } from "../../proxy/upstream/models/model-name";
import { costOf } from "../../proxy/upstream/models/price";
import type { Price } from "../../proxy/upstream/models/price-list";
import { count } from "./values";

const adviceSchema = z.object({
  about: z.enum(["unused_tools", "subagents", "hour_cache", "checks", "long_prompts", "no_marks"]),
  says: z.string().describe("What it is, with its sum, in a sentence or two."),
  change: z.string().describe("The setting or command that changes it."),
  saves_nano_credits: count.describe(
    "What it would have saved, in billionths of an AI credit; `at_most` says how certain.",
  ),
  at_most: z.boolean(),
});
export type Advice = z.output<typeof adviceSchema>;

export const adviceReportSchema = z
  .object({
    since_ms: count,
    total_nano_credits: count.describe("What all requests since then cost, as far as it is known."),
    routes: z
      .array(
        z.object({
          route: z.string(),
          model: z.string(),
          request_count: count,
          saved_nano_credits: z.number().describe("Negative where the client's own models would have cost less."),
        }),
      )
      .describe(
        "What the owner's routes saved since then: the same tokens at the price of the models that clients asked for.",
      ),
    items: z.array(adviceSchema).describe("What would have saved most comes first. Often empty."),
  })
  .meta({ id: "Advice" });

const days = 14;
const leastShare = 0.05;
/** Billionths of an AI credit: a dollar. */
const leastAmount = 100e9;

type Found = Omit<Advice, "saves_nano_credits" | "at_most"> & { saves: number; atMost?: true };

/** @throws ProxyError if the history cannot be read. */
export async function adviceFor(app: Scope): Promise<z.output<typeof adviceReportSchema>> {
  const since = app.now() - days * dayMs;
  const { history } = app;
  const filters = { from_ms: since };
  const total = (await history.totals(filters)).cost.credits ?? 0;
  const models = await app.catalogue.models().catch(() => []);
  const routes = await savedByRoutes(app, filters, models);
  const report = { since_ms: since, total_nano_credits: total, routes, items: [] as Advice[] };
  if (total < leastAmount) return report;
  const portions = await history.portions(filters);
  const missed = await history.statistics(filters, ["cache_miss", "client_name"]);
  const found = [
    ...unusedTools(portions),
    ...(await subagents(app, filters, models)),
    ...hourCache(missed.groups, (await history.statistics(filters, ["upstream_model"])).groups, models, app),
    ...checks((await history.statistics({ ...filters, kind: "check" }, [])).totals),
    ...longPrompts(portions),
    ...noMarks(missed.groups),
  ];
  report.items = found
    .filter(({ saves }) => saves >= leastAmount && saves >= leastShare * total)
    .sort((one, other) => other.saves - one.saves)
    .map(({ about, says, change, saves, atMost = false }) => ({
      about,
      says: says.replace("{sum}", `${formatAmount(saves)} credits (${percent(saves / total)})`),
      change,
      saves_nano_credits: Math.round(saves),
      at_most: atMost,
    }));
  return report;
}

type SavedByRoute = z.output<typeof adviceReportSchema>["routes"][number];

async function savedByRoutes(
  { history, config, billedPrices }: Scope,
  filters: Filters,
  models: readonly Model[],
): Promise<SavedByRoute[]> {
  const saved: SavedByRoute[] = [];
  for (const [route, model] of Object.entries(config.current.routes)) {
    const { groups } = await history.statistics({ ...filters, route }, ["client_model"]);
    const own = groups.map((group) => {
      const asked = findListed(idFromClaudeCode(group.key.client_model ?? ""), models);
      const amount = asked ? costAt(billedPrices.priceOf(asked), group) : null;
      return amount === null || group.cost.credits === undefined ? null : amount - group.cost.credits;
    });
    const request_count = sum(groups.map((group) => group.request_count));
    if (request_count > 0) saved.push({ route, model, request_count, saved_nano_credits: sum(own) });
  }
  return saved;
}

/** MCP servers whose tools no prompt has a call of. A call stands in all later prompts of its conversation. */
function* unusedTools(portions: readonly PortionSum[]): Generator<Found> {
  const used = new Set(portions.filter(({ kind }) => kind === "calls" || kind === "results").map(({ tool }) => tool));
  const unused = portions.filter(({ kind, tool }) => kind === "tools" && tool?.startsWith("mcp__") && !used.has(tool));
  const servers = [...new Set(unused.map(({ tool }) => tool!.slice("mcp__".length)))];
  if (servers.length === 0) return;
  const names = servers
    .slice(0, 4)
    .map((name) => `\`${name}\``)
    .join(", ");
  const more = servers.length > 4 ? ` and ${plural(servers.length - 4, "other MCP server")}` : "";
  yield {
    about: "unused_tools",
    says: `The tools of ${names}${more} were sent with each request and never called: {sum}.`,
    change: `Let Claude Code look tools up when it needs them: \`ENABLE_TOOL_SEARCH=true\`, which \`dragoman connect claude-code --write\` sets. Or take them out: \`claude mcp remove ${servers[0]}\`.`,
    saves: sum(unused.map(({ cost }) => cost)),
  };
}

/** Subagents of one kind whose model has a cheaper one of the same vendor that is meant for small tasks. */
async function subagents(
  { history, billedPrices }: Scope,
  filters: Filters,
  models: readonly Model[],
): Promise<Found[]> {
  const { groups } = await history.statistics({ ...filters, kind: "subagent" }, ["agent_type", "upstream_model"]);
  return groups.flatMap((group): Found | [] => {
    const { cost } = group;
    const { agent_type, upstream_model } = group.key;
    const own = models.find(({ id }) => id === upstream_model);
    if (!own || !cost.credits) return [];
    const cheaper = models
      .filter(({ light, vendor, kind, id }) => light && vendor === own.vendor && kind === "chat" && id !== own.id)
      .flatMap((model) => {
        const amount = costAt(billedPrices.priceOf(model), group);
        return amount === null ? [] : { id: model.id, amount };
      })
      .sort((one, other) => one.amount - other.amount)[0];
    if (!cheaper) return [];
    const name = agent_type ?? null;
    return {
      about: "subagents",
      says: `${name === null ? "Subagents" : `${name} subagents`} on ${own.id} cost ${formatAmount(cost.credits)} credits; on ${cheaper.id} the same tokens would have cost ${formatAmount(cheaper.amount)}, which saves {sum}.`,
      change: `In the config: \`"routes": { "${name === null ? "subagent" : `subagent:${name}`}": "${cheaper.id}" }\`. Or in Claude Code, for all subagents: \`CLAUDE_CODE_SUBAGENT_MODEL=${cheaper.id}\`.`,
      saves: cost.credits - cheaper.amount,
    };
  });
}

/** What the tokens of many requests cost at this price, none of them at the rate of long prompts; null if that is unknown. */
function costAt(
  price: Price,
  { input_tokens, output_tokens, cached_tokens, cache_write_tokens }: Group,
): number | null {
  const usage = {
    input: input_tokens ?? 0,
    output: output_tokens ?? 0,
    cachedInput: cached_tokens ?? 0,
    cacheWrite: price.tokens?.cacheWrite === undefined ? 0 : (cache_write_tokens ?? 0),
  };
  const { long: _, unknownAbove: __, ...usual } = price;
  return costOf(usual, usage, false, { planUnit: "credits" }).amount;
}

/** Prompts that came after five minutes and within an hour, less what it costs to write all of them for an hour. */
function* hourCache(
  missed: readonly Group[],
  ofModels: readonly Group[],
  models: readonly Model[],
  { config, billedPrices }: Scope,
): Generator<Found> {
  if (config.current.promptCache !== "auto") return;
  const late = missed.filter(({ key }) => key.cache_miss === "expired");
  const lost = sum(late.map(({ cache_lost_cost }) => cache_lost_cost));
  let dearer = 0;
  for (const { key, cache_write_tokens } of ofModels) {
    const model = models.find(({ id }) => id === key.upstream_model);
    const price = model && billedPrices.priceOf(model).tokens;
    if (!cache_write_tokens || price?.cacheWrite === undefined) continue;
    // A model that cannot keep a prompt for an hour gains nothing; what it lost is not known apart.
    if (price.cacheWriteHour === undefined) return;
    dearer += (cache_write_tokens * (price.cacheWriteHour - price.cacheWrite) * 1e9) / price.per;
  }
  yield {
    about: "hour_cache",
    says: `${plural(sum(late.map(({ request_count }) => request_count)), "prompt")} came more than five minutes after the one before, and within an hour. To keep prompts for an hour would have saved {sum}, after the dearer writing.`,
    change: '`"promptCache": "1h"` in the config.',
    saves: lost - dearer,
    atMost: true,
  };
}

function* checks({ cost, request_count }: Pick<Group, "cost" | "request_count">): Generator<Found> {
  if (cost.credits === undefined) return;
  yield {
    about: "checks",
    says: `Claude Code's auto mode let a model check tool calls in ${plural(request_count, "request")}: {sum}.`,
    change:
      'In `~/.claude/settings.json`: `"permissions": { "defaultMode": "acceptEdits" }`. Claude Code then asks you in place of the model; Shift+Tab changes it for a session.',
    saves: cost.credits,
  };
}

function* longPrompts(portions: readonly PortionSum[]): Generator<Found> {
  const dearer = portions.filter(({ kind }) => kind === "surcharge");
  if (dearer.length === 0) return;
  const requests = sum(dearer.map((each) => each.requests));
  yield {
    about: "long_prompts",
    says: `${plural(requests, "prompt")} ${requests === 1 ? "was" : "were"} so long that the dearer rate of the model applied: {sum} more than at the usual one.`,
    change:
      "Compact earlier: `/compact` in the client, or `CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000` for Claude Code. `maxPromptTokens` in the config refuses longer prompts.",
    saves: sum(dearer.map(({ cost }) => cost)),
    atMost: true,
  };
}

/** Clients of the Messages API that mark nothing: their requests pass unchanged, so nobody else marks it. */
function* noMarks(missed: readonly Group[]): Generator<Found> {
  for (const [client, groups] of Map.groupBy(
    missed.filter(({ key }) => key.cache_miss === "no_marks"),
    ({ key }) => toolOf(key.client_name ?? "")?.name ?? key.client_name ?? "A client without a name",
  ))
    yield {
      about: "no_marks",
      says: `${client} marks nothing for the cache, so Claude reads each prompt anew: {sum}.`,
      change:
        'Let it send `"cache_control": { "type": "ephemeral" }` on its last message and its tools, or speak Chat Completions: then dragoman marks the prompt.',
      saves: sum(groups.map(({ cache_lost_cost }) => cache_lost_cost)),
    };
}
