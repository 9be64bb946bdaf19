/** A model in the lists for clients, and the facts that a client's settings need. */
import { z } from "zod";
import { summaryOf } from "../../../clients/model-summary";
import type { ClientModel } from "../../../clients/models";
import { dialects } from "../../../dialects/hub/conversation";
import { clientPaths, embeddingsPaths, upstreamPaths } from "../../../lib/api-paths";
import { lazy } from "../../../lib/lazy";
import { type Model, modelKinds } from "./model";
import { modelAbilities, modelAbilitiesSchema } from "./model-abilities";
import { clientLimitsOf, type LimitConfig } from "./prompt-limit";

const maybe = () => z.number().nullable();

export const listedModelSchema = lazy(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("model"),
      type: z.literal("model"),
      created: z.literal(0),
      created_at: z.string(),
      owned_by: z.string(),
      display_name: z.string(),
      description: z.string().optional().describe("What it costs and holds, in a few words."),
      kind: z.enum(modelKinds),
      preview: z.boolean(),
      lightweight: z.boolean().describe("Meant for small tasks."),
      price_category: z.string().nullable().describe("GitHub's word for what it costs."),
      enabled: z.boolean(),
      premium: z.boolean(),
      premium_units: maybe(),
      model_picker_enabled: z.boolean(),
      supported_endpoints: z.array(z.string()),
      upstream_endpoints: z.array(z.string()),
      max_context_window_tokens: maybe(),
      max_prompt_tokens: maybe(),
      max_output_tokens: maybe(),
      max_inputs: maybe(),
      max_input_tokens: maybe().optional().describe("Anthropic's name of `max_prompt_tokens`."),
      max_tokens: maybe().optional().describe("Anthropic's name of `max_output_tokens`."),
      line: z.string().nullish().describe("Of a Claude model: `sonnet`, for example."),
      lifecycle: z.literal("active").optional(),
      deprecated_at: z.null().optional(),
      retires_at: z.null().optional(),
      capabilities: modelAbilitiesSchema(),
    })
    .meta({ id: "ListedModel" }),
);

type ListedModel = z.infer<ReturnType<typeof listedModelSchema>>;

/** The upstream does not report when a model was released: both SDKs document the epoch for that case. */
export function listedModel(model: Model, config: LimitConfig): ListedModel {
  const { context, prompt } = clientLimitsOf(model, config);
  return {
    id: model.id,
    object: "model",
    type: "model",
    created: 0,
    created_at: "1970-01-01T00:00:00Z",
    owned_by: model.vendor,
    display_name: model.name,
    description: summaryOf(model.price, prompt),
    kind: model.kind,
    preview: model.preview,
    lightweight: model.light,
    price_category: model.priceCategory ?? null,
    enabled: model.enabled,
    premium: model.price.premium,
    premium_units: model.price.units ?? null,
    model_picker_enabled: model.picked,
    supported_endpoints: endpointsOf(model),
    upstream_endpoints: model.dialects.map((dialect) => upstreamPaths[dialect]),
    max_context_window_tokens: context ?? null,
    max_prompt_tokens: prompt ?? null,
    max_output_tokens: model.limits.output ?? null,
    max_inputs: model.limits.inputs ?? null,
    max_input_tokens: prompt ?? null,
    max_tokens: model.limits.output ?? null,
    line: /^claude.*-(haiku|sonnet|opus|fable|mythos)\b/.exec(model.id)?.[1] ?? null,
    // The upstream lists only what it serves, and not until when.
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    capabilities: modelAbilities(model),
  };
}

/** A model that holds no conversation is served at no path for one. */
function endpointsOf({ kind, dialects: upstreams }: Model): string[] {
  if (kind === "embeddings") return [embeddingsPaths.client];
  return upstreams.length > 0 ? dialects.map((dialect) => clientPaths[dialect]) : [];
}

/** What `clientModels` reads of a listed model; a server of another version may list other members besides. */
export const clientModelSource = lazy(() =>
  listedModelSchema().pick({
    id: true,
    display_name: true,
    description: true,
    kind: true,
    preview: true,
    lightweight: true,
    price_category: true,
    enabled: true,
    premium: true,
    premium_units: true,
    model_picker_enabled: true,
    upstream_endpoints: true,
    max_context_window_tokens: true,
    max_prompt_tokens: true,
    max_output_tokens: true,
    capabilities: true,
  }),
);

export type ClientModelSource = z.infer<ReturnType<typeof clientModelSource>> & Pick<ClientModel, "tokens">;

/** The models that the settings of a client on this server can name, with their prices. */
export const ownClientModels = (models: readonly Model[], config: LimitConfig): ClientModel[] =>
  clientModels(models.map((model) => ({ ...listedModel(model, config), tokens: model.price.tokens })));

/** The listed models that a client's settings can name. */
export const clientModels = (listed: readonly ClientModelSource[]): ClientModel[] =>
  listed
    .filter(({ enabled, kind }) => enabled && kind === "chat")
    .map(({ capabilities: { adaptive_thinking, thinking_budget, reasoning_efforts, tools, vision }, ...model }) => ({
      id: model.id,
      name: model.display_name,
      summary: model.description,
      endpoints: model.upstream_endpoints,
      premium: model.premium,
      units: model.premium_units,
      tokens: model.tokens,
      preview: model.preview,
      light: model.lightweight,
      priceCategory: model.price_category ?? undefined,
      picked: model.model_picker_enabled,
      tools,
      vision,
      reasoning: adaptive_thinking || thinking_budget !== null || reasoning_efforts.length > 0,
      context: model.max_context_window_tokens ?? undefined,
      prompt: model.max_prompt_tokens ?? undefined,
      output: model.max_output_tokens ?? undefined,
    }));
