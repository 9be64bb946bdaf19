/** The model list, in each generation of billing. */
import type { DemoAccount } from "./accounts";
import { billing, type Endpoint, type Model } from "./model";
import { modelsInTokens, modelsInUnits } from "./model-lists";
import type { DemoState } from "./state";
import { type Json, refusal } from "./wire";

const endpointNames: Record<string, Endpoint> = {
  C: "/chat/completions",
  R: "/responses",
  W: "ws:/responses",
  M: "/v1/messages",
  S: "/v1/systemone",
};

const audiences: Record<string, string[]> = {
  paid: ["pro", "pro_plus", "individual_trial", "business", "enterprise"],
  edu: ["pro", "edu", "pro_plus", "individual_trial", "business", "enterprise"],
  max: ["pro_plus", "business", "enterprise"],
};

const planAudience: Record<string, string> = {
  free: "free",
  individual: "pro",
  individual_pro: "pro_plus",
  business: "business",
  enterprise: "enterprise",
};

const catalogues = { A: readTable(modelsInUnits), C: readTable(modelsInTokens) };

/** What a model of the list costs that prices tokens. @throws Error if it is not there. */
export function listPrices(id: string): Model["prices"] {
  const model = catalogues.C.find((candidate) => candidate.id === id);
  if (!model) throw new Error(`The demo lists no ${id}.`);
  return model.prices;
}

/** The models that an account may use, in order; an id may occur twice. */
export function visibleModels(demo: DemoState, account: DemoAccount): Model[] {
  const audience = planAudience[account.plan] ?? account.plan;
  return catalogues[demo.generation].filter(
    (model) => (restriction(model)?.includes(audience) ?? true) && (account.models?.includes(model.id) ?? true),
  );
}

/** The model of a request: visible to the account, with accepted terms, and available at this endpoint. */
export function modelFor(demo: DemoState, account: DemoAccount, id: string, endpoint: string): Model {
  const model = visibleModels(demo, account).find((candidate) => candidate.id === id);
  const direct = account.githubToken.startsWith("gho_");
  if (!model || policyState(model) === "disabled" || (direct && model.traits.has("preview")))
    throw refusal(400, "model_not_supported", "The requested model is not supported.", {
      param: "model",
      type: "invalid_request_error",
    });
  if (!offers(model, endpoint))
    throw refusal(400, "unsupported_api_for_model", `model "${id}" is not accessible via the ${endpoint} endpoint`);
  return model;
}

/** An item of `GET /models`. */
export function wireModel(demo: DemoState, account: DemoAccount, model: Model): Json {
  const { traits } = model;
  const state = policyState(model);
  const category = ["powerful", "versatile", "lightweight"].find((name) => traits.has(name));
  return {
    object: "model",
    id: model.id,
    name: model.name,
    vendor: model.vendor,
    version: model.family === "gpt" && !model.endpoints && model.kind === "chat" ? model.answersAs : model.id,
    preview: traits.has("preview"),
    is_chat_default: traits.has("default"),
    is_chat_fallback: traits.has("fallback"),
    model_picker_enabled: !traits.has("hidden") && !account.auto?.only && !account.auto?.unpicked,
    ...(category && { model_picker_category: category }),
    ...(demo.generation !== "A" && { model_picker_price_category: priceCategory(model) }),
    ...(model.endpoints && { supported_endpoints: model.endpoints }),
    ...warnings(demo, model),
    ...(state && {
      policy: { state, terms: `Enable access to the latest ${model.name} model from ${model.vendor}. DEMO terms.` },
    }),
    billing: { ...billing(demo, model, restriction(model)), ...discountOf(account, model) },
    capabilities: capabilities(demo, model),
  };
}

/** What GitHub tells whoever reads the list. */
function warnings({ warning }: DemoState, { traits }: Model): Json {
  return {
    ...(warning && { warning_messages: [warning] }),
    ...(traits.has("retains") && {
      warning_text: { data_retention: "Anthropic retains prompts and outputs of this model for 30 days. DEMO." },
    }),
  };
}

/** In percent. */
function discountOf({ auto }: DemoAccount, { id }: Model): Json {
  return auto?.discount && auto.pool.includes(id) ? { auto_discount: auto.discount } : {};
}

function readTable(table: string): Model[] {
  return table
    .trim()
    .split("\n")
    .flatMap((line) => {
      const model = readRow(line.split("|").map((cell) => cell.trim()));
      return model.traits.has("twice") ? [model, model] : [model];
    });
}

function readRow([
  id = "",
  name = "",
  vendor = "",
  units,
  limits,
  endpoints,
  answersAs = id,
  words,
  prices,
]: string[]): Model {
  const traits = new Map((words ?? "").split(" ").map((word) => word.split("=") as [string, string]));
  const [context, prompt, output] = (limits ?? "").split("/").map(Number);
  const [min, max] = (traits.get("budget") ?? "").split("-").map(Number);
  const [input = 0, out = 0, cacheRead = 0, cacheWrite] = (prices ?? "").split("/").map(Number);
  const efforts = traits.get("effort")?.split(",") ?? [];
  return {
    id,
    name,
    vendor,
    family: vendor === "Anthropic" ? "claude" : vendor === "Google" ? "gemini" : "gpt",
    kind: traits.has("embeddings") ? "embeddings" : traits.has("completion") ? "completion" : "chat",
    answersAs,
    units: Number(units),
    ...(prompt && { limits: { context: context ?? 0, prompt, output: output ?? 0 } }),
    ...(endpoints !== "-" && { endpoints: [...(endpoints ?? "")].map((letter) => endpointNames[letter]!) }),
    ...(max && { budget: { min: min ?? 0, max } }),
    efforts,
    reasons: efforts.length > 0 || Boolean(max) || traits.has("reasons"),
    traits,
    prices: { input, output: out, cacheRead, ...(cacheWrite && { cacheWrite }) },
  };
}

const restriction = (model: Model) => Object.entries(audiences).find(([word]) => model.traits.has(word))?.[1];

function policyState(model: Model): "enabled" | "disabled" | undefined {
  if (model.traits.has("no-policy")) return undefined;
  return model.traits.has("disabled") ? "disabled" : "enabled";
}

function offers(model: Model, endpoint: string): boolean {
  if (model.endpoints) return (model.endpoints as string[]).includes(endpoint);
  return endpoint === { chat: "/chat/completions", embeddings: "/embeddings", completion: "" }[model.kind];
}

function priceCategory({ prices: { input } }: Model): string {
  if (input >= 800) return "very_high";
  return input >= 400 ? "high" : input >= 200 ? "medium" : "low";
}

function capabilities(demo: DemoState, { traits, limits, budget, efforts, ...model }: Model): Json {
  const chat = model.kind === "chat";
  const gif = model.family === "gpt" || (model.family === "claude" && demo.generation !== "A") ? ["image/gif"] : [];
  return {
    object: "model_capabilities",
    type: model.kind,
    family: traits.get("family") ?? model.id,
    tokenizer: model.kind === "embeddings" ? "cl100k_base" : "o200k_base",
    ...(limits && {
      limits: {
        max_context_window_tokens: limits.context,
        max_prompt_tokens: limits.prompt,
        max_output_tokens: limits.output,
        ...(traits.has("whole") && { max_non_streaming_output_tokens: Number(traits.get("whole")) }),
        ...(traits.has("vision") && {
          vision: {
            max_prompt_image_size: 3145728,
            max_prompt_images: Number(traits.get("vision")),
            supported_media_types: ["image/jpeg", "image/png", "image/webp", ...gif],
          },
        }),
      },
    }),
    ...(traits.has("inputs") && { limits: { max_inputs: Number(traits.get("inputs")) } }),
    supports: {
      ...(chat && { streaming: true, tool_calls: true, parallel_tool_calls: true }),
      ...(traits.has("structured") && { structured_outputs: true }),
      ...(traits.has("vision") && { vision: true }),
      ...(traits.has("dimensions") && { dimensions: true }),
      ...((traits.has("adaptive") || traits.has("adaptive-only")) && { adaptive_thinking: true }),
      ...(budget && { min_thinking_budget: budget.min, max_thinking_budget: budget.max }),
      ...(efforts.length > 0 && { reasoning_effort: efforts }),
      ...((traits.has("search") || traits.has("no-search")) && { tool_search: traits.has("search") }),
      ...(traits.has("edits") && { context_editing: true }),
    },
  };
}
