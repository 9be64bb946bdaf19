/** `POST /mcp`: answers coding tools by the Model Context Protocol with what pages and the admin API show, for reading only. */
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Scope } from "../../app";
import { type BudgetItem, budgetItem } from "../../budgets/budget-list";
import { asProxyError } from "../../errors";
import { dayMs, priceInWords } from "../../format";
import type { Filters, Totals } from "../../history/history";
import { isObject } from "../../json";
import { type ClientKey, mayUse } from "../../keys/client-keys";
import { readJson } from "../../net/in/request-body";
import { listAccounts } from "./accounts";
import { listBudgets } from "./budgets";
import { getRequest, noSuchRequest } from "./handlers";
import { modelItems } from "./models";
import { listPrompts } from "./prompts";
import { listRequests, type ShownEntry, type ShownRunning } from "./requests";

/** Bytes of a message: a call of a tool is small. */
const maxMessage = 64 * 1024;

/**
 * Each message is answered by itself, without a session, in the form of either revision of the protocol.
 * @param key The caller's key; undefined where none is configured.
 * @throws ProxyError `invalid_request` for a body that is no JSON object.
 */
export async function answerMcp(app: Scope, request: Request, key: ClientKey | undefined): Promise<Response> {
  const { body } = await readJson(request, maxMessage);
  const handler = createMcpHandler(() => serverFor({ app, key }), {
    // Nothing here announces changes, and a subscription would stay open until the server stops.
    maxSubscriptions: 0,
  });
  return handler.fetch(request, { parsedBody: body });
}

/** Who asks. */
interface Asker {
  app: Scope;
  key: ClientKey | undefined;
}

/** The history of a member's scope has only the member's rows; of the owner's, a key is shown its own. */
const ownRows = ({ app, key }: Asker): Filters =>
  key === undefined || app.membership ? {} : { key_name: key.name, member: null };

interface Tool<Input extends z.ZodObject = z.ZodObject> {
  about: string;
  input: Input;
  answer(asker: Asker, input: z.output<Input>): Promise<object>;
}
const tool = <Input extends z.ZodObject>(definition: Tool<Input>) => definition as unknown as Tool;

const limit = (usual: number) => z.int().min(1).max(50).default(usual).describe("How many of them, at most 50.");
const project = z.string().optional().describe("Only what was done for this project.");
const days = (usual: number) =>
  z.int().min(1).max(366).default(usual).describe("How far to look back, in days of 24 hours.");

const spentBy = {
  day: "day",
  model: "upstream_model",
  project: "project",
  prompt: "prompt",
  client: "client_name",
  kind: "kind",
} as const;

const maxGroups = 50;

/** What can be asked. Models choose a tool by its name and `about`. */
const tools: Record<string, Tool> = {
  what_is_left: tool({
    about:
      "What is left: of the quota of each GitHub Copilot account (AI credits or premium requests, and when it begins again), and of the budgets that limit this key.",
    input: z.object({}),
    answer: async (asker) => ({ accounts: await listAccounts(asker.app), budgets: await budgetsFor(asker) }),
  }),
  what_was_spent: tool({
    about:
      "What was spent: AI credits, premium requests and tokens, in all and by day, model, project, prompt, client, or kind (main conversation, subagent, compaction and others).",
    input: z.object({
      by: z.enum(Object.keys(spentBy) as (keyof typeof spentBy)[]).default("day"),
      days: days(7),
      project,
    }),
    async answer(asker, { by, days, project }) {
      const { app } = asker;
      const filters = { ...ownRows(asker), from_ms: app.now() - days * dayMs, ...(project && { project }) };
      const { totals, groups } = await app.history.statistics(filters, [spentBy[by]]);
      const shown = groups
        .slice(0, maxGroups)
        .map((group) => ({ [by]: group.key[spentBy[by]] ?? null, ...spent(group) }));
      return {
        since_ms: filters.from_ms,
        total: spent(totals),
        groups: shown,
        groups_left_out: groups.length - shown.length,
      };
    },
  }),
  what_prompts_cost: tool({
    about:
      "What the last prompts cost and why, the newest first; the first is usually the one that asks now and is not finished. A sentence says the largest reasons, `parts` what went to the conversation itself, subagents and compaction, `cold` what the cache did not have.",
    input: z.object({ limit: limit(3), project }),
    answer: async (asker, { limit, project }) => {
      const page = await listPrompts(asker.app, { ...ownRows(asker), ...(project && { project }) }, limit);
      return { prompts: page.items, requests_without_prompt: page.without_prompt };
    },
  }),
  models_and_prices: tool({
    about: "The models that this key may use, with their prices and limits.",
    input: z.object({ search: z.string().optional().describe("A part of the model's id or name, such as `opus`.") }),
    async answer({ app, key }, { search = "" }) {
      const models = (await modelItems(app)).filter(
        ({ id, name }) => mayUse(key, id) && `${id} ${name}`.toLowerCase().includes(search.toLowerCase()),
      );
      return {
        models: models.map(
          ({ id, name, vendor, kind, enabled, aliases, price, limits: { context, prompt, output } }) => {
            return {
              id,
              name,
              vendor,
              kind,
              enabled,
              aliases,
              costs: priceInWords(price),
              price,
              limits: { context, prompt, output },
            };
          },
        ),
      };
    },
  }),
  why_refused: tool({
    about:
      "Why requests failed or were refused, the newest first: the error in words, which accounts were tried, what it waited for. With `request_id` (the header x-request-id of an answer), this one request.",
    input: z.object({ request_id: z.string().max(200).optional(), days: days(7), limit: limit(5) }),
    async answer(asker, { request_id, days, limit }) {
      const { app } = asker;
      if (request_id !== undefined) return oneRequest(asker, request_id);
      const filters = { ...ownRows(asker), has_error: true, from_ms: app.now() - days * dayMs };
      return { requests: (await listRequests(app, filters, limit)).items.map(told) };
    },
  }),
};

function serverFor(asker: Asker): McpServer {
  const { version, logger } = asker.app;
  const server = new McpServer(
    { name: "dragoman", version },
    {
      capabilities: { tools: { listChanged: false } },
      instructions:
        "Says what the requests to GitHub Copilot cost, what is left, and why one was refused. It changes nothing.",
    },
  );
  for (const [name, { about, input, answer }] of Object.entries(tools))
    server.registerTool(
      name,
      { description: about, inputSchema: input, annotations: { readOnlyHint: true, openWorldHint: false } },
      async (given) => {
        try {
          return { content: [text(JSON.stringify(readable(await answer(asker, given))))] };
        } catch (thrown) {
          const error = asProxyError(thrown);
          if (error.kind === "internal") logger.error(`The MCP tool ${name} failed unexpectedly.`, error.details.cause);
          return { content: [text(logger.scrub(error.message, 2048))], isError: true };
        }
      },
    );
  return server;
}

const text = (said: string) => ({ type: "text" as const, text: said });

/** An owner's key is shown what its own requests count for. */
async function budgetsFor({ app, key }: Asker): Promise<BudgetItem[]> {
  if (key === undefined || app.membership) return listBudgets(app, { limit: 20, offset: 0 });
  const states = await app.budgets.statesOfMember({ member: null, keys: [key.name], accounts: app.accounts });
  return states.filter(({ budget }) => budget.per !== "session").map((state) => budgetItem(state, app.now()));
}

/** @throws ProxyError `not_found`, also for a request with another key. */
async function oneRequest(asker: Asker, id: string): Promise<object> {
  const { item, running } = await getRequest(asker.app, id);
  const { key_name, member } = ownRows(asker);
  if (key_name !== undefined && (item.key_name !== key_name || item.member !== member)) throw noSuchRequest();
  return { ...told(item), running };
}

/** What answers the question why a request ended as it did. */
const toldColumns = [
  ...["request_id", "started_at_ms", "duration_ms", "path", "client_name", "project", "client_model", "upstream_model"],
  ...["account_id", "http_status", "error_type", "error_message", "attempts", "fallbacks", "waited_for", "waited_ms"],
  ...["stop_reason", "nano_credits", "premium_units"],
];
const told = (row: ShownEntry | ShownRunning) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => toldColumns.includes(name)));

const spent = (totals: Totals) => ({
  request_count: totals.request_count,
  error_count: totals.error_count,
  nano_credits: totals.nano_credits,
  premium_units: totals.premium_units,
  unknown_cost_count: Math.min(totals.unknown.nano_credits, totals.unknown.premium_units),
  input_tokens: totals.input_tokens,
  cached_tokens: totals.cached_tokens,
  output_tokens: totals.output_tokens,
});

/** Times as ISO 8601 and costs in whole credits: models do not convert long numbers well. */
function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      if (typeof each === "number" && /(?:^|_)(?:at|until|since)_ms$/.test(name))
        return [name.slice(0, -"_ms".length), new Date(each).toISOString()];
      if (typeof each === "number" && name.endsWith("nano_credits")) return [name.replace("nano_", ""), each / 1e9];
      return [name.replace("nano_", ""), readable(each)];
    }),
  );
}
