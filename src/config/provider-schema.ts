/** Providers in the config: other upstreams, each with its API, its address, and what is known of its models. */
import { z } from "zod";
import { lazy } from "../lib/lazy";
import { baseUrl } from "./addresses";
import { presetOf, presets } from "./provider-presets";

/** Printable ASCII, because it is sent in a header; a header loses spaces at either end. */
export const key = z
  .string()
  .max(1_000)
  .regex(/^[!-~](?:[ -~]*[!-~])?$/, "must be printable ASCII, not blank, without a space at either end");

export const modelId = z.string().trim().min(1).max(256);

/** The first segments of dragoman's own paths: a provider of such a name could not be reached, or would hide one of them. */
export const ownSegments: ReadonlySet<string> = new Set([
  "v1",
  "admin",
  "api",
  "usage",
  "token",
  "health",
  "metrics",
  "assets",
  "v1beta",
  "oauth",
  "managed",
  ".well-known",
]);

const providerName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,62}$/,
    "must be at most 63 lower-case letters, digits, - and _, and begin with a letter or digit",
  )
  .refine((name) => !ownSegments.has(name), "is the first segment of one of dragoman's own paths");

const tokens = () => z.int().min(1).max(1_000_000_000);
const dollars = () => z.number().min(0).max(100_000);

const modelPrice = lazy(() =>
  z.strictObject({
    input: dollars().describe("US dollars per million tokens of input."),
    output: dollars().describe("The same of output."),
    cachedInput: dollars().optional().describe("The same of input that the cache had; as `input` by default."),
    cacheWrite: dollars()
      .optional()
      .describe("The same of input that was written to the cache; as `input` by default."),
  }),
);

/** A model of a provider: its id, or an object with what is known of it. */
const providerModel = lazy(() =>
  z.strictObject({
    id: modelId.describe("The id that the provider knows."),
    name: z.string().trim().min(1).max(256).optional().describe("The display name."),
    kind: z.enum(["chat", "embeddings"]).optional().describe("`chat` or `embeddings`; guessed from the id by default."),
    context: tokens().optional().describe("Tokens of prompt and reply together."),
    prompt: tokens().optional().describe("Tokens of prompt."),
    output: tokens().optional().describe("Tokens of output."),
    tools: z.boolean().optional().describe("It calls tools."),
    vision: z.boolean().optional().describe("It sees images."),
    structuredOutputs: z.boolean().optional().describe("It keeps to a JSON schema."),
    reasoningEfforts: z
      .array(z.string().trim().min(1).max(32))
      .max(20)
      .optional()
      .describe("The efforts that it accepts, weakest first."),
    thinkingBudget: z
      .strictObject({ min: tokens(), max: tokens() })
      .optional()
      .describe("The range of thinking tokens that a request may set."),
    adaptiveThinking: z.boolean().optional().describe("It decides by itself how long to think."),
    price: modelPrice().optional().describe("US dollars per million tokens: `input`, `output`, and more."),
  }),
);

/** `messages` has three names. */
const types = ["messages", "chat", "responses", "anthropic", "vendorx"] as const;

const provider = lazy(() =>
  z.strictObject({
    type: z
      .enum(types)
      .transform((type) => (type === "vendorx" ? "anthropic" : type))
      .optional()
      .meta({ title: "API" })
      .describe(
        `The API it offers: \`messages\` (\`anthropic\` and \`vendorx\` mean the same), \`chat\` or \`responses\`. Without it, the name selects a preset: ${Object.keys(presets).join(", ")}.`,
      ),
    baseUrl: baseUrl
      .optional()
      .meta({ title: "Base URL" })
      .describe(
        "The address before `/v1/messages`; for `chat` and `responses` the one that ends in `/v1`. Use https; http is allowed for this machine only. A preset has one.",
      ),
    apiKey: key
      .optional()
      .meta({ title: "API key" })
      .describe("The key that dragoman sends to it. Only `chat` and `responses` may be without one.")
      .meta({ secret: true }),
    auth: z
      .enum(["x-api-key", "bearer", "api-key"])
      .optional()
      .meta({ title: "Authentication header" })
      .describe(
        "How the key is sent: in `x-api-key`, in `api-key`, or as `Authorization: Bearer`. Default: `x-api-key` for `messages`, else `bearer`.",
      ),
    models: z
      .array(z.union([modelId, providerModel()]))
      .max(1_000)
      .optional()
      .meta({ title: "Models" })
      .describe(
        "Its models: each as an id, or as an object with its limits, abilities and price. Without this, its own model list is used.",
      ),
    unsupportedParams: z
      .array(
        z
          .string()
          .max(200)
          .regex(/^[\w-]+(?:\.(?:[\w-]+|\*))*$/, "must be a field, or a path such as tools.*.strict"),
      )
      .max(100)
      .optional()
      .meta({ title: "Unsupported parameters" })
      .describe("Fields of a request that are never sent to it, such as `stream_options` or `tools.*.strict`."),
    maxTokens: z
      .enum(["max_tokens", "max_completion_tokens"])
      .optional()
      .meta({ title: "Name of the token limit" })
      .describe("With `chat`: the only name of the output limit that it knows."),
    thinking: z
      .enum(["reasoning", "reasoning_content"])
      .optional()
      .meta({ title: "Name of the thinking" })
      .describe("With `chat`: the field in which earlier thinking is sent back to it. It is left out by default."),
  }),
);

type GivenProvider = z.output<ReturnType<typeof provider>>;

/** A provider in effect. */
export interface ProviderConfig extends Omit<GivenProvider, "type" | "baseUrl" | "auth"> {
  type: NonNullable<GivenProvider["type"]>;
  baseUrl: string;
  auth: NonNullable<GivenProvider["auth"]>;
}

export type ProviderModelConfig = z.output<ReturnType<typeof providerModel>>;

/** All providers, by name. */
export const providersSchema = lazy(() =>
  z
    .record(providerName, provider())
    .refine((all) => Object.keys(all).length <= 1_000, "expected at most 1000 providers")
    .transform((all, context): Record<string, ProviderConfig> => {
      const complete = Object.entries(all).map(([name, given]) => {
        const full = { ...presetOf(name, given), ...given };
        for (const [member, why] of faultsIn(full))
          context.addIssue({ code: "custom", path: [name, member], message: why });
        const {
          type = "anthropic",
          baseUrl = "",
          auth = type === "anthropic" || type === "messages" ? "x-api-key" : "bearer",
        } = full;
        return [name, { ...full, type, baseUrl, auth }] as const;
      });
      return Object.fromEntries(complete);
    }),
);

/** Members that the type needs. */
function* faultsIn({ type, baseUrl, apiKey }: Partial<GivenProvider>): Generator<[member: string, why: string]> {
  if (type === undefined) return yield ["type", "is needed, unless the name is that of a preset"];
  if (baseUrl === undefined) yield ["baseUrl", "is needed"];
  if (apiKey === undefined && (type === "anthropic" || type === "messages")) yield ["apiKey", "is needed"];
}
