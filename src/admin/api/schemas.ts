/** What the admin API answers, as schemas. An unknown value is null, never 0. */
import { z } from "zod";
import { type Entry, entryColumns, type InFlightRequest, runningColumns } from "../../books/history/entry";
import type { Filters, Totals } from "../../books/history/history";
import { portionKinds } from "../../books/history/portions";
import { type Measure, measureNames } from "../../books/history/totals";
import { configSchema } from "../../config/schema";
import { costFields } from "../../lib/cost-fields";
import { accountStates } from "../../people/accounts/account-state";
import { autoProtocols } from "../../proxy/upstream/copilot/auto";
import { modelKinds } from "../../proxy/upstream/models/model";
import { modelAbilitiesSchema } from "../../proxy/upstream/models/model-abilities";
import { count, maybe, text, time } from "./values";

export const metaSchema = z.object({
  dbPath: z.string().describe("The history's file, or the address of the team's database."),
  retentionDays: count,
  maxRows: count,
  version: z.string(),
  demo: z.boolean(),
  started_at_ms: time,
  history: z.enum(["ok", "degraded"]).describe("`degraded`: rows are waiting to be written, or no history is kept."),
  row_count: maybe.describe("Null if the history cannot be read."),
  oldest_row_at_ms: maybe,
  running_count: count.describe("Requests in progress; in a team, on all servers that answer within a second."),
  time_zone: z.string().describe("The zone of the hours and days of statistics."),
  facts: z
    .array(
      z.object({
        name: z.string(),
        state: z.enum(["good", "warn", "bad", "idle"]).describe("`idle`: worth knowing, and no fault."),
        says: z.string(),
        more: z.string().describe("What follows from it, and what to do; may be empty."),
        page: z.string().describe("The admin page where it is shown or can be changed."),
      }),
    )
    .describe("What is right and wrong with the server, in a sentence each."),
});

const accountStatsSchema = z.object({
  since_ms: time,
  request_count: count,
  error_count: count,
  tokens_total: maybe.describe("The known input and output; null if none is known."),
  avg_duration_ms: maybe,
  last_request_at_ms: maybe.describe("Of the newest recorded request, even if it was before `since_ms`."),
});

export const accountSchema = z
  .object({
    account_id: z.string(),
    account_key: z.string().describe("Distinguishes accounts of the same name: on another host, or a temporary one."),
    account_type: text.describe(
      "GitHub's name for the plan; `student` for Copilot Student, which GitHub calls `individual` too.",
    ),
    host: z.string().describe("`github.com`, or an enterprise's own."),
    app: text.describe("The app that was signed in with; null for a temporary account."),
    kind: z
      .enum(["person", "app", "copilot-cli"])
      .describe(
        "`app`: the installation of a GitHub App, for which its organization pays; `account_id` is that. `copilot-cli`: what GitHub's own program on this machine is signed in with.",
      ),
    temporary: z.boolean().describe("Passed at start, and never saved."),
    auto_only: z
      .boolean()
      .describe("The plan has nothing but Auto, as its name or a refusal says: only `auto` can be asked for."),
    warnings: z.array(z.string()).describe("What GitHub's model list tells whoever uses the account."),
    runtime: z.object({
      entitlement: maybe.describe("In `unit`."),
      remaining: maybe.describe("In `unit`. May be negative: GitHub goes on counting below zero."),
      unlimited: z.boolean(),
      failed: z.boolean().describe("A person must act."),
    }),
    state: z.enum(accountStates),
    until_ms: maybe.describe("When the state ends by itself; null if it does not."),
    reason: text,
    limited_models: z
      .array(z.object({ model: z.string(), until_ms: time, reason: z.string() }))
      .describe("Models that cool down by themselves; the account serves the others."),
    unit: z.enum(["premium", "credits", "chat", "unknown"]),
    reset_at_ms: maybe,
    overage: z.boolean().describe("More than the entitlement may be used, and is paid for."),
    overage_count: maybe,
    stale: z.boolean().describe("GitHub could not be reached: these are the last known numbers, from `updated_at_ms`."),
    updated_at_ms: maybe,
    quota_error: text.describe("Why GitHub could not be reached."),
    stats: accountStatsSchema.optional(),
  })
  .meta({ id: "Account" });

/** Of an account, what is known without asking GitHub. */
export const knownAccountSchema = accountSchema.pick({
  ...{ account_id: true, account_key: true, state: true, reason: true, until_ms: true },
  ...{ runtime: true, unit: true, reset_at_ms: true },
});

const tokenPrice = {
  input: z.number(),
  output: z.number(),
  cached_input: maybe,
  cache_write: maybe,
  cache_write_hour: maybe.describe("For tokens that the cache keeps for an hour."),
};

export const modelSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    vendor: z.string(),
    version: z.string().describe("The version that the id resolves to, often the same."),
    kind: z.enum(modelKinds),
    preview: z.boolean(),
    picked: z.boolean().describe("Offered in GitHub's own model picker."),
    lightweight: z.boolean().describe("Meant for small tasks."),
    price_category: text.describe("GitHub's word for what it costs."),
    enabled: z.boolean().describe("False: its terms must be accepted first, in GitHub's settings."),
    absent: z
      .boolean()
      .describe(
        "GitHub's last list lacks it, an earlier one of the last 24 hours had it: lists differ from call to call.",
      ),
    warnings: z
      .array(z.object({ code: z.string(), message: z.string() }))
      .describe("What GitHub tells of it, such as `client_version_deprecated` or `data_retention`."),
    endpoints: z.array(z.string()).describe("The upstream paths that serve it."),
    limits: z.object({
      context: maybe,
      prompt: maybe.describe("The lower of the upstream's limit and `maxPromptTokens` of the config."),
      upstream_prompt: maybe.describe("The upstream's own limit."),
      output: maybe,
      full_output: maybe.describe("A longer answer is only available as a stream."),
      inputs: maybe.describe("Texts in one embeddings call."),
      images: maybe,
      image_bytes: maybe,
      media_types: z.array(z.string()).nullable(),
    }),
    supports: modelAbilitiesSchema(),
    price: z.object({
      premium: z.boolean().describe("It uses an account's quota. False only if GitHub's list says that it is free."),
      units: maybe.describe("Premium units of one request that a person makes."),
      tokens: z
        .object({ ...tokenPrice, per: z.number() })
        .nullable()
        .describe("AI credits per `per` tokens. A kind whose price is not stated is null."),
      long: z
        .object({ ...tokenPrice, above: z.number() })
        .nullable()
        .describe("For prompts of more than `above` tokens."),
      boundary_unknown: z
        .boolean()
        .describe("GitHub lists prices for long prompts, but not from where on. `tokens` has the dearer ones."),
      promotion: z
        .object({ discount_percent: maybe, ends_at_ms: maybe, message: text })
        .nullable()
        .describe("A discount for a time, as GitHub lists it."),
    }),
    token_count: z
      .object({
        ratio: z.number().describe("Tokens of the model for one of the local vocabulary."),
        requests: count.describe("The number of requests it was learned from; 0 for `tokenEstimateMultiplier`."),
      })
      .describe("How the input tokens of this model are estimated before the upstream reports them."),
    accounts: z.array(z.string()).describe("The accounts whose model list has it."),
    provider: z.string().nullable().describe("The provider whose model it is; null for GitHub Copilot."),
    assumed: z.array(z.string()).describe("Abilities in `supports` that neither its provider nor the config states."),
    aliases: z.array(z.string()).describe("Other names for it in the config."),
    refused_fields: z
      .array(z.object({ field: z.string(), until_ms: time }))
      .describe("Fields that the model rejected recently; they are left out until then."),
  })
  .meta({ id: "Model" });

const attempts = z.array(
  z.object({
    account: text,
    model: z.string().optional().describe("If several models were asked."),
    status: count.optional(),
    error: z.string().optional(),
    ms: z.number(),
  }),
);

const columnTypes = { TEXT: z.string(), INTEGER: z.number(), FLAG: z.boolean() };
/** A flag is shown as a boolean. */
type Shown<Value> = Value extends 0 | 1 ? boolean : Value;
const columnSchemas = Object.fromEntries(
  Object.entries(entryColumns).map(([name, { sql }]): [string, z.ZodType] => {
    const type = columnTypes[sql.split(" ", 1)[0] as keyof typeof columnTypes];
    return [name, sql.includes("NOT NULL") ? type : type.nullable()];
  }),
) as { [Name in keyof Entry]: z.ZodType<Shown<Entry[Name]>> };
const fallbacks = z
  .array(z.object({ model: z.string(), status: count.nullable(), why: z.string() }))
  .describe("The models that were to serve before the one that did; `status` is null for a model that was not asked.");
const auto = z
  .object({
    by: z.enum(autoProtocols),
    why: z.string().nullable(),
    discount: z.number().nullable().describe("The share of the price that GitHub says it takes off, 0 … 1."),
  })
  .nullable()
  .describe("How GitHub Copilot’s Auto chose the model; null if the client did not ask for `auto`.");
const portions = z
  .array(
    z.object({
      kind: z
        .enum(portionKinds)
        .describe(
          "`client`: what the client put into the person's messages; `output`: the reply; `surcharge`: what of all costs the dearer rate of a long prompt added.",
        ),
      tool: text.describe("The tool, or `mcp__<server>`. Null where there is none, and for the smaller ones together."),
      count: count.describe("How many pieces."),
      tokens: count.describe("The upstream's count of the input, divided by how long the pieces are."),
      cached: count.describe("Of them, read from the cache, which has the beginning of a prompt."),
      cost: maybe.describe("Billionths of an AI credit, at this request's prices."),
      grown: maybe.describe("How many more than in the request before in the conversation."),
    }),
  )
  .describe("What the prompt was made of, in its order, and the reply. Empty if it is not known.");
const names = z.array(z.string()).optional();
const cache_change = z
  .object({
    added: names,
    removed: names,
    changed: names,
    message: count.optional().describe("The first message that is another one, counted from 1."),
    of: count.optional(),
    model: z.string().optional().describe("The model that had the prompt in its cache."),
  })
  .nullable()
  .describe(
    "What changed since the prompt before, if that is why the cache did not have it: tools, a message, the model.",
  );
const lists = {
  attempts,
  fixups: z.array(z.string()),
  dropped: z.array(z.string()),
  fallbacks,
  auto,
  cache_change,
  portions,
};

export const entrySchema = z
  .object({ id: count.optional().describe("Once its row is written."), ...columnSchemas, ...lists })
  .meta({ id: "Request" });

const isRunningColumn = Object.fromEntries(runningColumns.map((name) => [name, true])) as Record<
  keyof InFlightRequest,
  true
>;

/** Unknown values are null. */
export const runningSchema = z
  .object(columnSchemas)
  .pick(isRunningColumn)
  .extend({ attempts, fallbacks })
  .meta({ id: "RunningRequest" });

export const snapshotSchema = z.object({
  now_ms: time,
  running: z.array(runningSchema),
  missed: z.boolean().describe("Events may have been lost since the last one."),
  elsewhere: z
    .string()
    .optional()
    .describe("Says that other servers of the team may run requests that are not listed."),
});

export const liveEventSchema = z
  .discriminatedUnion("event", [
    z.object({ event: z.literal("snapshot"), data: snapshotSchema }),
    z.object({ event: z.literal("running"), data: runningSchema }),
    z.object({ event: z.literal("finished"), data: entrySchema }),
    z.object({ event: z.literal("accounts"), data: z.object({ accounts: z.array(knownAccountSchema) }) }),
  ])
  .describe("Each server-sent event, by its name; its data is JSON.");

export const pageSchema = z.object({
  items: z.array(entrySchema),
  next_cursor_id: count.nullable(),
  has_more: z.boolean(),
});

export const requestSchema = z.discriminatedUnion("running", [
  z.object({ item: entrySchema, running: z.literal(false) }),
  z.object({ item: runningSchema, running: z.literal(true) }),
]);

const measures = Object.fromEntries(measureNames.map((name) => [name, maybe])) as Record<Measure, typeof maybe>;
/** Computed from buckets, without sorting requests. */
const percentile = maybe.describe("At most 5 % off.");

export const totalsSchema = z
  .object({
    request_count: count,
    error_count: count,
    success_rate: maybe.describe("0 to 1; null without requests."),
    ...measures,
    ...costFields(),
    unknown: z.record(z.string(), count).describe("Of how many requests the measure, or the cost, is unknown."),
    cacheable: z
      .object({ input_tokens: count, cached_tokens: count })
      .describe("Of the requests where both are known."),
    cached_share: maybe.describe("The cached part of that input, 0 to 1."),
    avg_duration_ms: maybe,
    p50_duration_ms: percentile,
    p95_duration_ms: percentile,
    avg_first_byte_ms: maybe,
    p50_first_byte_ms: percentile,
    p95_first_byte_ms: percentile,
    first_at_ms: maybe,
    last_at_ms: maybe,
  } satisfies Record<keyof Totals, z.ZodType>)
  .meta({ id: "Totals" });

export const statisticsSchema = z.object({
  by: z.array(z.string()),
  totals: totalsSchema,
  groups: z.array(
    totalsSchema.extend({
      key: z.record(z.string(), text).describe("Dimension → value."),
      filters: z.custom<Filters>().describe("The filters that select these requests."),
    }),
  ),
  others: totalsSchema.nullable().describe("The totals of the groups that are not listed."),
});

/** A missing key keeps its value. */
const configShape = Object.fromEntries(
  Object.entries(configSchema().in.shape).map(([name, schema]) => [name, schema.nullable().optional()]),
);

/** The config validates a change as a whole: `config/patch.ts`. */
export const configPatchSchema = z
  .strictObject({
    ...configShape,
    revision: z.string().optional().describe("The change is refused if this is not the current one."),
  })
  .describe(
    "The keys to change, each with its new value; null takes a key back to its default. A secret may be sent as its mask.",
  )
  .meta({ id: "ConfigPatch" });

export const configAnswerSchema = z.object({
  config: z.looseObject({}).describe("Every key with its value; secrets are masked."),
  sources: z.record(z.string(), z.enum(["default", "stored"])),
  revision: z.string().describe("Send it back with a change to make sure that nothing changed in between."),
  waiting: z.array(z.string()).describe("Keys that take effect at the next start."),
  fault: text,
});

export const adminErrorSchema = z
  .object({
    error: z.object({
      type: z.string().describe("A code for programs."),
      message: z.string().describe("What happened, and what to do."),
      param: z.string().optional().describe("The parameter or key at fault."),
    }),
  })
  .meta({ id: "AdminError" });

/** Only its content type counts. */
export const emptyBody = z
  .looseObject({})
  .describe("Empty. A web page of another origin cannot send this content type.");
