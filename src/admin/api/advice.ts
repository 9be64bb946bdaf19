/**
 * What changing one thing would have saved in the last two weeks, from the own history and the list's prices, and what it did
 * save where it was changed. Advice that is worth little is none: it has to save a twentieth of all, and a dollar.
 */
import { z } from "zod";
import type { Filters, Group } from "../../books/history/history";
import type { PortionSum } from "../../books/history/portions";
import { idFromClaudeCode } from "../../clients/claude-code-names";
import { toolOf } from "../../clients/index";
import { dayMs, formatAmount, percent, plural } from "../../lib/format";
import { sum, sumKnown } from "../../lib/money";
import type { Scope } from "../../parts/app";
import type { Model } from "../../proxy/upstream/models/model";
import { findListed } from "../../proxy/upstream/models/model-name";
import { costOf } from "../../proxy/upstream/models/price";
import type { Price } from "../../proxy/upstream/models/price-list";
import { count, maybe } from "./values";

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
          saved_nano_credits: maybe.describe(
            "Negative where the client's own models would have cost less; null where it is unknown of all requests.",
          ),
          unknown_saving_count: count.describe("Requests where it is unknown."),
        }),
      )
      .describe(
        "About what the owner's routes saved since then: the same tokens at the price of the models that clients asked for.",
      ),
    followed: z
      .array(
        z.object({
          about: adviceSchema.shape.about,
          says: z.string(),
          saved_nano_credits: count.describe(
            "What it would have cost in the last 7 days as in the 14 days before them, by its share of the rest, less what it did cost.",
          ),
        }),
      )
      .describe("What was changed in the last 7 days and costs less than half since then."),
    items: z.array(adviceSchema).describe("What would have saved most comes first. Often empty."),
  })
  .meta({ id: "Advice" });

const days = 14;
const daysAfterwards = 7;
const leastShare = 0.05;
/** Billionths of an AI credit: a dollar. */
const leastAmount = 100e9;

type Found = Omit<Advice, "saves_nano_credits" | "at_most"> & {
  /** The same in every period. */
  name: string;
  saves: number;
  atMost?: true;
  /** What could have been saved of the same in another period. */
  savesIn: (period: Period) => number;
};

/** The sums of a period from which advice is found. */
interface Period {
  total: number;
  portions: readonly PortionSum[];
  missed: readonly Group[];
  ofModels: readonly Group[];
  ofSubagents: readonly Group[];
  checks: Pick<Group, "cost" | "request_count">;
}

/** Only the total where too little was spent for any advice to be worth it. */
async function readPeriod({ history }: Scope, filters: Filters): Promise<Pick<Period, "total"> | Period> {
  const total = (await history.totals(filters)).cost.credits ?? 0;
  if (total < leastAmount) return { total };
  return {
    total,
    portions: await history.portions(filters),
    missed: (await history.statistics(filters, ["cache_miss", "client_name"])).groups,
    ofModels: (await history.statistics(filters, ["upstream_model"])).groups,
    ofSubagents: (await history.statistics({ ...filters, kind: "subagent" }, ["agent_type", "upstream_model"])).groups,
    checks: (await history.statistics({ ...filters, kind: "check" }, [])).totals,
  };
}

/** @throws ProxyError if the history cannot be read. */
export async function adviceFor(app: Scope): Promise<z.output<typeof adviceReportSchema>> {
  const now = app.now();
  const since = now - days * dayMs;
  const models = await app.catalogue.models().catch(() => []);
  const routes = await savedByRoutes(app, { from_ms: since }, models);
  const period = await readPeriod(app, { from_ms: since });
  const followed = await followedAdvice(app, models, now);
  const done = new Set(followed.map(({ name }) => name));
  const keepsHour = app.config.current.promptCache !== "auto";
  return {
    since_ms: since,
    total_nano_credits: period.total,
    routes,
    followed: followed.map(({ about, says, saved }) => ({ about, says, saved_nano_credits: Math.round(saved) })),
    items: worthIt(app, models, period)
      .filter(({ about, name }) => !done.has(name) && !(about === "hour_cache" && keepsHour))
      .map(({ about, says, change, saves, atMost = false }) => ({
        about,
        says: says.replace("{sum}", `${formatAmount(saves)} credits (${percent(saves / period.total)})`),
        change,
        saves_nano_credits: Math.round(saves),
        at_most: atMost,
      })),
  };
}

/** What would have saved most comes first. */
function worthIt(app: Scope, models: readonly Model[], period: Pick<Period, "total"> | Period): Found[] {
  if (!("portions" in period)) return [];
  return [
    ...unusedTools(period),
    ...subagents(app, models, period),
    ...hourCache(app, models, period),
    ...checks(period),
    ...longPrompts(period),
    ...noMarks(period),
  ]
    .filter(({ saves }) => saves >= leastAmount && saves >= leastShare * period.total)
    .sort((one, other) => other.saves - one.saves);
}

/** What was worth advice in the 14 days before the last 7, and costs less than half since then. What routes saved is in `routes`. */
async function followedAdvice(app: Scope, models: readonly Model[], now: number) {
  const changed = now - daysAfterwards * dayMs;
  const before = await readPeriod(app, { from_ms: changed - days * dayMs, to_ms: changed - 1 });
  const found = worthIt(app, models, before);
  if (found.length === 0) return [];
  const after = await readPeriod(app, { from_ms: changed });
  if (!("portions" in after)) return [];
  return found.flatMap(({ about, name, saves, savesIn }) => {
    // Without a rest it has no share of one.
    if (saves >= before.total) return [];
    const left = Math.max(0, savesIn(after));
    const saved = ((after.total - left) * saves) / (before.total - saves) - left;
    if (saved < leastAmount || saved < left) return [];
    const says = `${name}: ${percent(saves / before.total)} of all credits could have been saved in the ${days} days before, and ${percent(left / after.total)} in the last ${daysAfterwards}. The change saved about ${formatAmount(saved)} credits.`;
    return { about, name, says, saved };
  });
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
      const amount = asked ? costAt(billedPrices.priceOf(asked), group).amount : null;
      // The tokens of a request whose cost is unknown are in the amount and not in the cost.
      const isOfSame = group.unknown.cost === group.unknown.input_tokens;
      const saves =
        amount === null || group.cost.credits === undefined || !isOfSame ? null : amount - group.cost.credits;
      return {
        request_count: group.request_count,
        saves,
        unknown: saves === null ? group.request_count : group.unknown.cost,
      };
    });
    const request_count = sum(own.map((group) => group.request_count));
    if (request_count > 0)
      saved.push({
        route,
        model,
        request_count,
        saved_nano_credits: sumKnown(own.map(({ saves }) => saves)),
        unknown_saving_count: sum(own.map(({ unknown }) => unknown)),
      });
  }
  return saved;
}

/** MCP servers whose tools no prompt has a call of. A call stands in all later prompts of its conversation. */
function* unusedTools({ portions }: Period): Generator<Found> {
  const used = new Set(portions.filter(({ kind }) => kind === "calls" || kind === "results").map(({ tool }) => tool));
  const isUnused = ({ kind, tool }: PortionSum) => kind === "tools" && tool?.startsWith("mcp__") && !used.has(tool);
  const servers = [...new Set(portions.filter(isUnused).map(({ tool }) => tool!.slice("mcp__".length)))];
  if (servers.length === 0) return;
  const names = servers
    .slice(0, 4)
    .map((name) => `\`${name}\``)
    .join(", ");
  const more = servers.length > 4 ? ` and ${plural(servers.length - 4, "other MCP server")}` : "";
  const name = `The tools of ${names}${more}`;
  // Also those that are called by now: they are paid for as before.
  const savesIn = (period: Pick<Period, "portions">) => sum(period.portions.filter(isUnused).map(({ cost }) => cost));
  yield {
    about: "unused_tools",
    name,
    says: `${name} were sent with each request and never called: about {sum}.`,
    change: `Let Claude Code look tools up when it needs them: \`ENABLE_TOOL_SEARCH=true\`, which \`dragoman connect claude-code --write\` sets. Or take them out: \`claude mcp remove ${servers[0]}\`.`,
    saves: savesIn({ portions }),
    savesIn,
  };
}

/**
 * Subagents of one kind whose model has a cheaper one of the same vendor that is meant for small tasks. None of a kind that has a
 * route.
 */
function subagents(app: Scope, models: readonly Model[], { ofSubagents }: Period): Found[] {
  return ofSubagents.flatMap((group): Found | [] => {
    const { cost } = group;
    const { agent_type, upstream_model } = group.key;
    const kind = agent_type == null ? "subagent" : `subagent:${agent_type}`;
    const { routes } = app.config.current;
    const own = models.find(({ id }) => id === upstream_model);
    if (!own || !cost.credits || kind in routes || "subagent" in routes) return [];
    const cheaper = models
      .filter(({ light, vendor, kind, id }) => light && vendor === own.vendor && kind === "chat" && id !== own.id)
      .flatMap((model) => {
        const { amount, isLeast } = costAt(app.billedPrices.priceOf(model), group);
        return amount === null ? [] : { id: model.id, amount, isLeast };
      })
      .sort((one, other) => one.amount - other.amount)[0];
    if (!cheaper) return [];
    const name = `${agent_type == null ? "Subagents" : `${agent_type} subagents`} on ${own.id}`;
    return {
      about: "subagents",
      name,
      says: `${name} cost ${formatAmount(cost.credits)} credits; on ${cheaper.id} the same tokens would have cost ${formatAmount(cheaper.amount)}, which saves {sum}.`,
      change: `In the config: \`"routes": { "${kind}": "${cheaper.id}" }\`. Or in Claude Code, for all subagents: \`CLAUDE_CODE_SUBAGENT_MODEL=${cheaper.id}\`.`,
      saves: cost.credits - cheaper.amount,
      ...(cheaper.isLeast && { atMost: true }),
      savesIn: (period) => sum(subagents(app, models, period).map((each) => (each.name === name ? each.saves : 0))),
    };
  });
}

/**
 * The cost of the tokens of many requests in billionths of a credit, null if it is unknown. All count at the rate of their mean
 * prompt: where that is a short one, long ones may make it more (`isLeast`), as only sums are kept.
 */
function costAt(price: Price, group: Group): { amount: number | null; isLeast: boolean } {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens, request_count, unknown } = group;
  const usage = {
    input: input_tokens ?? 0,
    output: output_tokens ?? 0,
    cachedInput: cached_tokens ?? 0,
    cacheWrite: price.tokens?.cacheWrite === undefined ? 0 : (cache_write_tokens ?? 0),
  };
  const { long, unknownAbove, ...usual } = price;
  const mean = usage.input / (request_count - unknown.input_tokens);
  const ends = [long?.above, unknownAbove].filter((above) => above !== undefined);
  const isLong = ends.some((above) => mean > above);
  const { amount } = costOf(isLong ? price : usual, usage, false, { planUnit: "credits" });
  return { amount, isLeast: ends.length > 0 && !isLong };
}

const isLate = ({ key }: Group) => key.cache_miss === "expired";

/** Prompts that came after five minutes and within an hour, less what it costs to write all of them for an hour. */
function* hourCache({ billedPrices }: Scope, models: readonly Model[], { missed, ofModels }: Period): Generator<Found> {
  const lostIn = (groups: readonly Group[]) => sum(groups.filter(isLate).map(({ cache_lost_cost }) => cache_lost_cost));
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
    name: "Prompts that came too late for the cache",
    says: `${plural(sum(missed.filter(isLate).map(({ request_count }) => request_count)), "prompt")} came more than five minutes after the one before, and within an hour. To keep prompts for an hour would have saved {sum}, after the dearer writing.`,
    change: '`"promptCache": "1h"` in the config.',
    saves: lostIn(missed) - dearer,
    atMost: true,
    savesIn: (period) => lostIn(period.missed),
  };
}

function* checks({ checks: { cost, request_count } }: Period): Generator<Found> {
  if (cost.credits === undefined) return;
  yield {
    about: "checks",
    name: "Auto mode's checks",
    says: `Claude Code's auto mode let a model check tool calls in ${plural(request_count, "request")}: {sum}.`,
    change:
      'In `~/.claude/settings.json`: `"permissions": { "defaultMode": "acceptEdits" }`. Claude Code then asks you in place of the model; Shift+Tab changes it for a session.',
    saves: cost.credits,
    savesIn: (period) => period.checks.cost.credits ?? 0,
  };
}

function* longPrompts({ portions }: Period): Generator<Found> {
  const isDearer = ({ kind }: PortionSum) => kind === "surcharge";
  const dearer = portions.filter(isDearer);
  if (dearer.length === 0) return;
  const requests = sum(dearer.map((each) => each.requests));
  yield {
    about: "long_prompts",
    name: "The dearer rate of long prompts",
    says: `${plural(requests, "prompt")} ${requests === 1 ? "was" : "were"} so long that the dearer rate of the model applied: {sum} more than at the usual one.`,
    change:
      "Compact earlier: `/compact` in the client, or `CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000` for Claude Code. `maxPromptTokens` in the config refuses longer prompts.",
    saves: sum(dearer.map(({ cost }) => cost)),
    atMost: true,
    savesIn: (period) => sum(period.portions.filter(isDearer).map(({ cost }) => cost)),
  };
}

/** Clients of the Messages API that mark nothing: their requests pass unchanged, so nobody else marks it. */
function* noMarks({ missed }: Period): Generator<Found> {
  const unmarked = (groups: readonly Group[]) =>
    Map.groupBy(
      groups.filter(({ key }) => key.cache_miss === "no_marks"),
      ({ key }) => toolOf(key.client_name ?? "")?.name ?? key.client_name ?? "A client without a name",
    );
  const lost = (groups: readonly Group[] = []) => sum(groups.map(({ cache_lost_cost }) => cache_lost_cost));
  for (const [client, groups] of unmarked(missed))
    yield {
      about: "no_marks",
      name: `${client}'s prompts without marks`,
      says: `${client} marks nothing for the cache, so Claude reads each prompt anew: {sum}.`,
      change:
        'Let it send `"cache_control": { "type": "ephemeral" }` on its last message and its tools, or speak Chat Completions: then dragoman marks the prompt.',
      saves: lost(groups),
      savesIn: (period) => lost(unmarked(period.missed).get(client)),
    };
}
