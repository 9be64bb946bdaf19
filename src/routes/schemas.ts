/** What the client endpoints besides the model dialects take and answer. An unknown value is null, never 0. */
import { z } from "zod";
import type { ClientDialect } from "../dialects/hub/conversation";
import { wholeNumber } from "../lib/input";
import { lazy } from "../lib/lazy";
import { accountStates } from "../people/accounts/account-state";
import { listedModelSchema } from "../proxy/upstream/models/model-view";

const maybe = () => z.number().nullable();
const text = () => z.string().nullable();
const moment = () => text().describe("ISO 8601, UTC.");

export const usageSchema = lazy(() =>
  z
    .object({
      id: z.string(),
      entitlement: maybe().describe("In `unit`."),
      remaining: maybe().describe("In `unit`. May be negative: GitHub goes on counting below zero."),
      unlimited: z.boolean(),
      failed: z.boolean().describe("A person must act; `state` and `reason` say more."),
      state: z.enum(accountStates),
      until: moment(),
      reason: text(),
      limited_models: z
        .array(z.object({ model: z.string(), until: moment(), reason: z.string() }))
        .default([])
        .describe("Models that cool down by themselves; the account serves the others."),
      plan: text(),
      unit: z
        .enum(["premium", "credits", "chat", "unknown"])
        .describe("Premium requests, AI credits (`credits`), chat messages (`chat`), or not reported (`unknown`)."),
      reset_at: moment(),
      overage: z.boolean().describe("More than the entitlement may be used, and is paid for."),
      overage_count: z.number().nullable(),
      stale: z.boolean().describe("GitHub could not be reached: these are the last known numbers, from `updated_at`."),
      updated_at: moment(),
      quota_error: text().describe("Why GitHub could not be reached."),
    })
    .meta({ id: "AccountUsage" }),
);

export const usageListSchema = lazy(() => z.object({ accounts: z.array(usageSchema()) }));

export const usageDetailSchema = lazy(() =>
  usageSchema().extend({
    host: z.string(),
    temporary: z.boolean(),
    quota_snapshots: z.looseObject({}).describe("GitHub's own numbers, as it sent them."),
  }),
);

const accountIndex = lazy(() => wholeNumber().describe("As `/usage` lists the accounts, from 0."));
export const usageParams = lazy(() => z.object({ accountIndex: accountIndex() }));
export const usageLineQuery = lazy(() =>
  z.object({
    format: z.string().max(500).optional().describe("Text with fields, for each account."),
    session: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe("The id of a session, as the client sends it: what its last prompt and all of it cost comes first."),
  }),
);

export const tokenQuery = lazy(() => z.object({ account: accountIndex().optional() }));
export const tokenSchema = lazy(() =>
  z.object({
    token: z.string(),
    expires_at: maybe().describe("Seconds since 1970."),
  }),
);

export const modelsQuery = lazy(() =>
  z.object({
    limit: wholeNumber()
      .refine((count) => count > 0, "must be at least 1")
      .meta({ minimum: 1 })
      .optional()
      .describe("Models on a page; all when missing."),
    after_id: z.string().optional().describe("The page begins after this model."),
    client_version: z.string().optional().describe("Codex says its version: it gets all models in its own form."),
  }),
);

export const googleModelsQuery = lazy(() =>
  z.object({
    pageSize: modelsQuery().shape.limit,
    pageToken: z.string().optional().describe("The `nextPageToken` of the page before."),
  }),
);

/** All clients ask for their lists at one path. */
export const listQuery = lazy(() => modelsQuery().extend(googleModelsQuery().shape));

export const googleStreamQuery = lazy(() =>
  z.object({
    alt: z
      .enum(["sse", "json"])
      .optional()
      .describe("`sse`: server-sent events; otherwise one JSON array, sent as it grows."),
  }),
);

export const modelListSchema = lazy(() =>
  z.object({
    object: z.literal("list"),
    data: z.array(listedModelSchema()),
    has_more: z.boolean(),
    first_id: text(),
    last_id: text(),
  }),
);

export const frontSchema = lazy(() =>
  z.object({
    name: z.literal("dragoman"),
    version: z.string(),
    demo: z.string().optional(),
    endpoints: z.array(z.string()),
  }),
);

export const healthSchema = lazy(() =>
  z.object({
    status: z.literal("ok"),
    version: z.string(),
    demo: z.boolean(),
    accounts: z.array(z.string()).describe("The state of each account of the owner."),
    team_accounts: z
      .record(z.enum(accountStates), z.number())
      .optional()
      .describe("Of a team: how many accounts, those of all members too, are in each state."),
    history: z.enum(["ok", "degraded"]),
  }),
);

export const liveSchema = lazy(() => z.object({ status: z.literal("ok"), version: z.string() }));

export const readySchema = lazy(() =>
  z.object({
    status: z
      .enum(["ready", "draining", "database", "config"])
      .describe(
        "`draining`: a signal to stop has come. `database`: it has been away for too long. `config`: the config is not valid, so an older one is used.",
      ),
    version: z.string(),
    degraded: z
      .array(z.enum(["accounts", "history", "database"]))
      .describe(
        "What does not work: no account of anybody can serve now, the history cannot be written, or a team's database is away.",
      ),
  }),
);

/** The answer of a dialect. Its members are the vendor's, whose reference the definition links. */
export const dialectAnswer = lazy(() => ({
  "application/json": z.looseObject({}).describe("In the dialect's own form."),
  "text/event-stream": z.string().describe("With `stream`: the dialect's own events."),
}));

/** Google's answer to a request for a stream. */
export const googleStream = lazy(() => ({
  "text/event-stream": z.string().describe("With `alt=sse`."),
  "application/json": z.array(z.looseObject({})),
}));

/** The members of a dialect's request that dragoman reads; the others are the vendor's. */
export const dialectBody = lazy(() =>
  z.looseObject({ model: z.string().min(1), stream: z.boolean().nullish() }).describe("In the dialect's own form."),
);

export const embeddingsBody = lazy(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z.union([z.string(), z.array(z.string())]),
    encoding_format: z.enum(["float", "base64"]).nullish(),
  }),
);

/** The members of a request in Google's format that dragoman reads besides the address. */
export const googleBody = lazy(() => z.looseObject({}).describe("In Google's own form."));

export const googleModelSchema = lazy(() =>
  z
    .looseObject({ name: z.string(), displayName: z.string(), supportedGenerationMethods: z.array(z.string()) })
    .meta({ id: "GoogleModel" }),
);

export const googleModelListSchema = lazy(() =>
  z.object({
    models: z.array(googleModelSchema()),
    nextPageToken: z.string().optional(),
  }),
);

export const googleCountSchema = lazy(() => z.object({ totalTokens: z.int() }));

export const searchBody = lazy(() => z.looseObject({ commands: z.looseObject({}) }).describe("As Codex sends it."));
export const searchAnswer = lazy(() => z.object({ output: z.string() }));

export const countSchema = lazy(() => z.object({ input_tokens: z.int() }));

const openaiError = lazy(() =>
  z
    .object({ error: z.object({ message: z.string(), type: z.string(), param: text(), code: text() }) })
    .meta({ id: "OpenAIError" }),
);
const anthropicError = lazy(() =>
  z
    .object({
      type: z.literal("error"),
      error: z.object({ type: z.string(), message: z.string() }),
      request_id: z.string(),
    })
    .meta({ id: "AnthropicError" }),
);

const googleError = lazy(() =>
  z
    .object({
      error: z.object({
        code: z.int(),
        message: z.string(),
        status: z.string(),
        details: z.array(z.looseObject({ "@type": z.string() })),
      }),
    })
    .meta({ id: "GoogleError" }),
);

export const errorSchemas = lazy(
  (): Record<ClientDialect, z.ZodType> => ({
    chat: openaiError(),
    responses: openaiError(),
    messages: anthropicError(),
    gemini: googleError(),
  }),
);
