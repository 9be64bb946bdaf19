/** The config, defined once: types, defaults, validation, the admin form and the table in config/README.md follow from `configSchema`. */
import { z } from "zod";
import { ProxyError } from "../lib/errors";
import { hostNameSource, isOrigin, maxHostName, maxOrigin } from "../lib/host-name";
import { isObject } from "../lib/json";
import { lazy } from "../lib/lazy";
import { explain, faultsOf, refuseInherited } from "../lib/schema-errors";
import { baseUrl, webhookUrl } from "./addresses";
import { budgetSchema, keyBudgetName } from "./budget-schema";
import { accountKeys, clientKeys, projectAccounts } from "./key-schema";
import { key, modelId, providersSchema } from "./provider-schema";
import { routesSchema } from "./route-schema";

const origin = z.string().max(maxOrigin).refine(isOrigin, "must be an exact origin, such as http://localhost:3000");
const hostName = z
  .string()
  .toLowerCase()
  .max(maxHostName)
  .regex(new RegExp(`^${hostNameSource}$`), "must be a bare host name, without port or path");
const headerName = z
  .string()
  .max(100)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be a header name")
  .refine((name) => !ownHeaders.test(name), "is a header that dragoman sets itself");
const headerValue = z
  .string()
  .max(4_096)
  .regex(/^[\t -~]*$/, "must be printable ASCII");

/** Headers that frame the request, carry an account's token, or state the initiator. */
const ownHeaders =
  /^(x-initiator|host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|authorization|cookie)$/i;

const webSearchEngine = lazy(() =>
  z
    .strictObject({
      name: z
        .enum(["model", "brave", "tavily", "searxng"])
        .default(defaults.webSearchEngine.name)
        .meta({ title: "Engine for web searches", section: "search" })
        .describe(
          "Who searches: `model` for the client's model where it can, else the one that `webSearchModel` names; or `brave`, `tavily` or `searxng` for all clients but those of the Responses API on its own models.",
        ),
      apiKey: key
        .optional()
        .meta({ title: "Engine's API key", section: "search" })
        .describe("The key for Brave or Tavily.")
        .meta({ secret: true }),
      url: baseUrl
        .optional()
        .meta({ title: "Engine's address", section: "search" })
        .describe(
          "The address of a SearXNG instance that permits the format json; for the others only behind a proxy.",
        ),
    })
    .refine(({ name, apiKey }) => apiKey !== undefined || (name !== "brave" && name !== "tavily"), {
      path: ["apiKey"],
      message: "is needed for this engine",
    })
    .refine(({ name, url }) => url !== undefined || name !== "searxng", {
      path: ["url"],
      message: "is needed for this engine",
    })
    .prefault({}),
);

const atMost = (max: number) => (record: object) => Object.keys(record).length <= max;

/** The values of keys that are not in the file. */
const defaults = {
  auth: { apiKeys: [] as z.output<ReturnType<typeof clientKeys>> },
  providers: {},
  logLevel: "info" as const,
  retentionDays: 14,
  maxRows: 200_000,
  allowedOrigins: [] as string[],
  allowedHosts: [] as string[],
  upstreamHeaders: {},
  budgets: [] as z.output<ReturnType<typeof budgetSchema>>[],
  notices: { webhookFormat: "json" as const, desktop: false, accounts: [0.8, 0.95] },
  accountOrder: [] as string[],
  pausedAccounts: [] as string[],
  accountAffinity: false,
  freeModelRouting: "round-robin" as const,
  neverOverage: false,
  autoWhenOnly: false,
  whenLimited: "refuse" as "refuse" | "wait",
  longestWaitMinutes: 2,
  modelAliases: {},
  fallbacks: {},
  projectAccounts: {},
  routes: {},
  tokenEstimateMultiplier: 1.15,
  maxPromptTokens: {},
  useResponsesApiWebSearch: true,
  webSearchModel: "auto",
  webSearchEngine: { name: "model" as const },
  toolSearch: "auto" as const,
  promptCache: "auto" as "auto" | "1h" | "off",
  claudeCodeSettings: {} as Record<string, unknown>,
  updateNotice: true,
  anthropicApiKey: undefined,
};

/**
 * Each key has a title (its label in the form), the section of the form that it is in, and a description. `secret` values are never shown; `secretByName` applies
 * to the values whose name suggests a secret. An edit in the file of a key with `restart` takes effect only at start, as `config/store.ts` sees to.
 */
export const configSchema = lazy(() =>
  z
    .strictObject({
      auth: z
        .strictObject({
          apiKeys: clientKeys()
            .default(defaults.auth.apiKeys)
            .meta({ title: "Client keys", section: "access" })
            .describe(
              "The keys that clients may send: each as text, or as an object with a name. If there are none, clients need no key.",
            )
            .meta({ secret: true, restart: true }),
        })
        .prefault({}),
      providers: providersSchema()
        .prefault({})
        .meta({ title: "Providers", section: "providers" })
        .describe("Other upstreams, by name. A client uses a model of theirs as `name/model`."),
      logLevel: z
        .enum(["error", "warn", "info", "debug"])
        .default(defaults.logLevel)
        .meta({ title: "Log level", section: "history" })
        .describe("The least severe level that is written to stderr."),
      retentionDays: z
        .int()
        .min(1)
        .max(3_650)
        .default(defaults.retentionDays)
        .meta({ title: "Retention in days", section: "history" })
        .describe("How many days a request stays in the history."),
      maxRows: z
        .int()
        .min(1)
        .max(10_000_000)
        .default(defaults.maxRows)
        .meta({ title: "Maximum history size", section: "history" })
        .describe("How many requests the history keeps at most. A team's database has no such limit unless it is set."),
      allowedOrigins: z
        .array(origin)
        .max(1_000)
        .default(defaults.allowedOrigins)
        .meta({ title: "Allowed origins", section: "access" })
        .describe("Origins of web pages that may call dragoman from a browser."),
      allowedHosts: z
        .array(hostName)
        .max(1_000)
        .default(defaults.allowedHosts)
        .meta({ title: "Allowed host names", section: "access" })
        .describe("Host names under which dragoman may be called, in addition to localhost and IP addresses."),
      upstreamHeaders: z
        .record(headerName, headerValue)
        .refine(atMost(1_000), "expected at most 1000 headers")
        .default(defaults.upstreamHeaders)
        .meta({ title: "Upstream headers", section: "requests" })
        .describe(
          "Headers that are added to upstream requests or replace dragoman's own. Values are masked if the name suggests a key, token or secret.",
        )
        .meta({ secretByName: true }),
      budgets: z
        .array(budgetSchema())
        .max(200)
        .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "two budgets have the same name")
        .default(defaults.budgets)
        .meta({ title: "Budgets", section: "budgets" })
        .describe("Limits on what requests may use in a period, by member, account, key, model or project."),
      notices: z
        .strictObject({
          webhookUrl: webhookUrl
            .optional()
            .meta({ title: "Webhook for notices", section: "notices" })
            .describe("Receives notices as POST requests. Use https; http is allowed for this machine only.")
            .meta({ secret: true }),
          webhookSecret: key
            .optional()
            .meta({ title: "Webhook secret", section: "notices" })
            .describe("Signs each call: `x-dragoman-signature` has the HMAC-SHA256 of the body.")
            .meta({ secret: true }),
          webhookFormat: z
            .enum(["json", "slack", "discord"])
            .default(defaults.notices.webhookFormat)
            .meta({ title: "Webhook format", section: "notices" })
            .describe("The form of the body: dragoman's own, or that of Slack or Discord."),
          desktop: z
            .boolean()
            .default(defaults.notices.desktop)
            .meta({ title: "Desktop notices", section: "notices" })
            .describe("Show notices on the desktop of this machine."),
          accounts: z
            .array(z.number().gt(0).lt(1))
            .max(10)
            .default(defaults.notices.accounts)
            .meta({ title: "Notices about accounts", section: "notices" })
            .describe("Shares of an account's quota at which a notice is sent."),
        })
        .prefault({}),
      accountOrder: accountKeys
        .default(defaults.accountOrder)
        .meta({ title: "Order of the accounts", section: "accounts" })
        .describe("The accounts to use first, such as `github.com/octocat`; the others follow as they were added."),
      pausedAccounts: accountKeys
        .default(defaults.pausedAccounts)
        .meta({ title: "Paused accounts", section: "accounts" })
        .describe("Accounts that get no requests."),
      accountAffinity: z
        .boolean()
        .default(defaults.accountAffinity)
        .meta({ title: "Account affinity", section: "accounts" })
        .describe("Keep a client's session on the account that served it before, as long as that account is ready."),
      freeModelRouting: z
        .enum(["round-robin", "in-order"])
        .default(defaults.freeModelRouting)
        .meta({ title: "Routing for free models", section: "accounts" })
        .describe(
          "Which account serves a model that uses no quota: each in turn, or always the first one that is ready.",
        ),
      neverOverage: z
        .boolean()
        .default(defaults.neverOverage)
        .meta({ title: "Never use overage", section: "accounts" })
        .describe(
          "Treat an account as exhausted when its included quota is used up, even if GitHub permits paid overage.",
        ),
      autoWhenOnly: z
        .boolean()
        .default(defaults.autoWhenOnly)
        .meta({ title: "Auto for every name", section: "models" })
        .describe(
          "Where the plans of all accounts offer Auto only (Copilot Free and Student), every model that a client names means `auto`. If off, other names are refused there.",
        ),
      whenLimited: z
        .enum(["refuse", "wait"])
        .default(defaults.whenLimited)
        .meta({ title: "At a limit", section: "accounts" })
        .describe(
          "What becomes of a request while every account that could serve it is limited or exhausted: `refuse` answers with the time at which one is ready; `wait` holds the request until then and sends it in its turn.",
        ),
      longestWaitMinutes: z
        .int()
        .min(1)
        .max(1_440)
        .default(defaults.longestWaitMinutes)
        .meta({ title: "Longest wait in minutes", section: "accounts" })
        .describe(
          "How long a request waits at most. One that would wait longer is refused at once. A request that is not streamed waits for four minutes at most.",
        ),
      modelAliases: z
        .record(modelId, modelId)
        .refine((all) => Object.keys(all).length <= 1_000, "expected at most 1000 aliases")
        .default(defaults.modelAliases)
        .meta({ title: "Model aliases", section: "models" })
        .describe(
          "Other names for models: the name that a client sends, in which `*` stands for any text, and the model's id. A name that a model has is never an alias.",
        ),
      fallbacks: z
        .record(modelId, z.array(modelId).min(1, "expected at least one model").max(10))
        .refine((all) => Object.keys(all).length <= 1_000, "expected at most 1000 chains")
        .default(defaults.fallbacks)
        .meta({ title: "Fallbacks", section: "models" })
        .describe(
          "For a model, the models that serve in its place while it has no quota, is limited or overloaded. At most three of them are asked.",
        ),
      projectAccounts: projectAccounts().default(defaults.projectAccounts),
      routes: routesSchema().default(defaults.routes),
      tokenEstimateMultiplier: z
        .number()
        .min(0.1)
        .max(10)
        .default(defaults.tokenEstimateMultiplier)
        .meta({ title: "Token estimate multiplier", section: "tokens" })
        .describe(
          "Factor for estimated token counts: Claude's tokenizer makes more tokens of a text than the local one.",
        ),
      maxPromptTokens: z
        .record(modelId, z.int().min(1).max(1_000_000_000))
        .refine(atMost(1_000), "expected at most 1000 models")
        .default(defaults.maxPromptTokens)
        .meta({ title: "Maximum prompt size", section: "models" })
        .describe(
          "Tokens of prompt by model id. A longer prompt is refused, so that the client compacts. Default: where a model's dearer long-context price begins.",
        ),
      useResponsesApiWebSearch: z
        .boolean()
        .default(defaults.useResponsesApiWebSearch)
        .meta({ title: "Web search in the Responses API", section: "search" })
        .describe(
          "Whether web search works: models that can search do so themselves, and dragoman searches for the others. If off, the tools are removed.",
        ),
      webSearchModel: modelId
        .default(defaults.webSearchModel)
        .meta({ title: "Model for web searches", section: "search" })
        .describe(
          "The model that searches where the client's model cannot, or cannot keep to the client's limits: an id, `auto` for the cheapest that can, or `off`. Models that can still search themselves.",
        ),
      webSearchEngine: webSearchEngine(),
      toolSearch: z
        .enum(["auto", "off"])
        .default(defaults.toolSearch)
        .meta({ title: "Search of tools", section: "requests" })
        .describe(
          "Whether models without a tool search of their own search for a client's deferred tools here, and for the tools beyond the 128 that a model takes: `auto` or `off`. With `off`, deferred tools are sent with every request, and too many tools are refused.",
        ),
      promptCache: z
        .enum(["auto", "1h", "off"])
        .default(defaults.promptCache)
        .meta({ title: "Prompt cache", section: "requests" })
        .describe(
          "Whether cache keys and cache marks are added for clients whose API has no field for them: `auto` or `off`. With `1h`, Claude also keeps a prompt for an hour where the client asks for that, and tools and instructions where dragoman adds the marks: reading it after a longer pause stays cheap, but writing it costs twice the input price instead of 1.25 times.",
        ),
      claudeCodeSettings: z
        .record(z.string().max(100), z.unknown())
        .refine(atMost(100), "expected at most 100 settings")
        .default(defaults.claudeCodeSettings)
        .meta({ title: "Settings of Claude Code", section: "claude-code" })
        .describe(
          "Settings that Claude Code gets when a member signs in to a team with `/login`, as in its managed-settings.json. dragoman adds the models and what budgets allow.",
        ),
      updateNotice: z
        .boolean()
        .default(defaults.updateNotice)
        .meta({ title: "Notice of new versions", section: "notices" })
        .describe("Look once a day for a newer version, and log one line if there is one."),
      anthropicApiKey: key
        .optional()
        .meta({ title: "Anthropic API key", section: "tokens" })
        .describe("Anthropic's API key, for exact token counts of Claude models.")
        .meta({ secret: true }),
      vendorxApiKey: key.optional().describe("Means the same as anthropicApiKey.").meta({ secret: true }),
    })
    .refine(({ anthropicApiKey: one, vendorxApiKey: other }) => !one || !other || one === other, {
      path: ["vendorxApiKey"],
      message: "means the same as anthropicApiKey, but has a different value; remove one of them",
    })
    .transform(({ vendorxApiKey, ...config }) => ({
      ...config,
      anthropicApiKey: config.anthropicApiKey ?? vendorxApiKey,
    })),
);

/** The config in effect: every key with its value or default. */
export type Config = z.output<ReturnType<typeof configSchema>>;

/** What budgets use is stored under these, so that two would share one amount. @throws ProxyError */
function withOwnAmounts(config: Config): Config {
  const { budgets, auth } = config;
  const named = budgets.map(({ name, unit, per }) => `${unit}/${per}/${name}`);
  for (const key of auth.apiKeys.filter((each) => typeof each !== "string"))
    for (const budget of key.budgets ?? []) {
      const name = keyBudgetName(key.name, budget);
      const stored = `${budget.unit}/${budget.per}/${name}`;
      if (named.includes(stored)) {
        const sentence = `auth.apiKeys: the budget \`${name}\` of the key \`${key.name}\` has the name of another budget. Give one of them another name.`;
        throw new ProxyError("invalid_request", sentence, { param: "auth.apiKeys" });
      }
      named.push(stored);
    }
  return config;
}

/** The outermost keys, and those inside of them as `auth.apiKeys`. */
function namedKeys(): string[] {
  const { properties = {} } = z.toJSONSchema(configSchema(), { io: "input" });
  return Object.entries(properties).flatMap(([name, inner]) => {
    const own = typeof inner === "object" ? Object.keys(inner.properties ?? {}) : [];
    return [name, ...own.map((each) => `${name}.${each}`)];
  });
}

/** @throws ProxyError `invalid_request` with one sentence about all errors; `param` is the path of the first one. */
export function parseConfig(value: unknown): Config {
  // Most starts have no file: making the schema would take a tenth of their time.
  if (isObject(value) && Object.keys(value).length === 0) return structuredClone(defaults);
  refuseInherited(value);
  const result = configSchema().safeParse(value);
  if (result.success) return withOwnAmounts(result.data);
  const param = faultsOf(result.error)[0]?.path || undefined;
  throw new ProxyError("invalid_request", explain(result.error, namedKeys()), { param });
}
