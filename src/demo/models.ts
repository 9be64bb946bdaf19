/**
 * The model list, in each generation of billing. A row:
 * id | name | vendor | premium units | context/prompt/output | endpoints | id in answers | traits | input/output/cache-read/cache-write credits per million
 * Endpoints: C chat, R responses, W websocket, M messages, S decisions, - the key is missing on the wire.
 */
import type { DemoAccount } from "./accounts";
import { billing, type Endpoint, type Model } from "./model";
import { november } from "./november-models";
import type { DemoState } from "./state";
import { type Json, refusal } from "./wire";

const generationA = `
claude-opus-4.6-1m | Claude Opus 4.6 (1M context) | Anthropic | 6 | 1000000/936000/64000 | MC | claude-opus-4-6-20260205 | powerful paid adaptive budget=1024-32000 effort=low,medium,high structured vision=5 whole=16000 | 500/2500/50/625
claude-opus-4.6 | Claude Opus 4.6 | Anthropic | 3 | 200000/168000/32000 | MC | claude-opus-4-6-20260205 | powerful paid adaptive budget=1024-32000 effort=low,medium,high structured vision=1 whole=16000 | 500/2500/50/625
claude-opus-4.5 | Claude Opus 4.5 | Anthropic | 3 | 200000/168000/32000 | CM | claude-opus-4-5-20251101 | powerful paid budget=1024-32000 vision=5 whole=16000 | 500/2500/50/625
claude-sonnet-4.6 | Claude Sonnet 4.6 | Anthropic | 1 | 200000/168000/32000 | CM | claude-sonnet-4-6-20260217 | versatile paid adaptive budget=1024-32000 effort=low,medium,high structured vision=5 whole=16000 | 300/1500/30/375
claude-sonnet-4.5 | Claude Sonnet 4.5 | Anthropic | 1 | 200000/168000/32000 | CM | claude-sonnet-4-5-20250929 | versatile paid budget=1024-32000 vision=5 whole=16000 | 300/1500/30/375
claude-sonnet-4 | Claude Sonnet 4 | Anthropic | 1 | 216000/128000/16000 | CM | claude-sonnet-4-20250514 | versatile paid budget=1024-32000 vision=5 | 300/1500/30/375
claude-haiku-4.5 | Claude Haiku 4.5 | Anthropic | 0.33 | 200000/136000/64000 | CM | claude-haiku-4-5-20251001 | versatile budget=1024-32000 vision=5 whole=16000 | 100/500/10/125
gemini-3.1-pro-preview | Gemini 3.1 Pro | Google | 1 | 200000/136000/64000 | C | gemini-3.1-pro-preview | powerful edu preview budget=256-32000 effort=low,medium,high vision=10 | 200/1200/20
gemini-3-pro-preview | Gemini 3 Pro | Google | 1 | 200000/136000/64000 | - | gemini-3-pro-preview | powerful edu preview disabled family=gemini-3-pro budget=256-32000 effort=low,high vision=10 | 200/1200/20
gemini-3-flash-preview | Gemini 3 Flash | Google | 0.33 | 128000/128000/64000 | - | gemini-3-flash-preview | lightweight preview budget=256-32000 vision=10 | 50/300/5
gemini-2.5-pro | Gemini 2.5 Pro | Google | 1 | 128000/128000/64000 | - | gemini-2.5-pro | powerful edu budget=128-32768 vision=10 | 125/1000/12
gpt-5.4 | GPT-5.4 | OpenAI | 1 | 400000/272000/128000 | RW | gpt-5.4-2026-03-05 | powerful paid effort=low,medium,high,xhigh structured vision=1 phases | 250/1500/25
gpt-5.4-mini | GPT-5.4 mini | OpenAI | 0.33 | 400000/272000/128000 | RW | gpt-5.4-mini-2026-03-17 | lightweight no-policy effort=none,low,medium,high,xhigh structured vision=1 phases | 75/450/7
gpt-5.3-codex | GPT-5.3-Codex | OpenAI | 1 | 400000/272000/128000 | RW | gpt-5.3-codex | powerful edu effort=low,medium,high structured vision=1 phases | 175/1400/17
gpt-5.2 | GPT-5.2 | OpenAI | 1 | 400000/272000/128000 | CRW | gpt-5.2-2025-12-11 | versatile edu reasons structured vision=1 | 175/1400/17
gpt-5.1 | GPT-5.1 | OpenAI | 1 | 264000/128000/64000 | CRW | gpt-5.1-2025-11-13 | versatile edu effort=none,low,medium,high structured vision=1 | 125/1000/12
gpt-5-mini | GPT-5 mini | Azure OpenAI | 0 | 264000/128000/64000 | CRW | gpt-5-mini-2025-08-07 | lightweight effort=low,medium,high structured vision=1 | 0/0/0
gpt-4.1 | GPT-4.1 | Azure OpenAI | 0 | 128000/128000/16384 | - | gpt-4.1-2025-04-14 | versatile default fallback structured vision=1 | 0/0/0
gpt-4.1-2025-04-14 | GPT-4.1 | Azure OpenAI | 0 | 128000/128000/16384 | - | gpt-4.1-2025-04-14 | hidden family=gpt-4.1 no-policy structured vision=1 | 0/0/0
gpt-4o | GPT-4o | Azure OpenAI | 0 | 128000/64000/4096 | - | gpt-4o-2024-11-20 | versatile no-policy vision=1 | 0/0/0
gpt-4o-2024-11-20 | GPT-4o | Azure OpenAI | 0 | 128000/64000/16384 | - | gpt-4o-2024-11-20 | hidden family=gpt-4o no-policy vision=1 | 0/0/0
gpt-4o-mini | GPT-4o mini | Azure OpenAI | 0 | 128000/12288/4096 | - | gpt-4o-mini-2024-07-18 | hidden no-policy | 0/0/0
gpt-4o-mini-2024-07-18 | GPT-4o mini | Azure OpenAI | 0 | 128000/12288/4096 | - | gpt-4o-mini-2024-07-18 | hidden family=gpt-4o-mini no-policy | 0/0/0
gpt-4 | GPT 4 | Azure OpenAI | 0 | 32768/32768/4096 | - | gpt-4-0613 | hidden no-policy twice | 0/0/0
gpt-41-copilot | GPT-4.1 Copilot | Azure OpenAI | 0 | - | - | gpt-41-copilot | hidden family=gpt-4.1 no-policy completion | 0/0/0
text-embedding-3-small | Embedding V3 small | Azure OpenAI | 0 | - | - | text-embedding-3-small | hidden no-policy embeddings dimensions inputs=512 | 0/0/0`;

const generationC = `
claude-opus-5.5 | Claude Opus 5.5 | Anthropic | 0 | 1000000/936000/128000 | M | claude-opus-5-5-20260922 | powerful paid adaptive-only always-thinks free-choice system-turns search edits texts effort=low,medium,high,xhigh,max structured vision=5 | 500/2500/25/625
claude-sonnet-5 | Claude Sonnet 5 | Anthropic | 0 | 1000000/936000/128000 | CM | claude-sonnet-5-20260804 | versatile paid adaptive-only search edits promo=50 effort=low,medium,high,xhigh,max structured vision=5 whole=16000 | 300/1500/30/375
claude-sonnet-4.6 | Claude Sonnet 4.6 | Anthropic | 0 | 1000000/936000/64000 | CM | claude-sonnet-4-6-20260217 | versatile paid adaptive search edits budget=1024-32000 effort=low,medium,high,max structured vision=5 whole=16000 | 300/1500/30/375
claude-haiku-5.5 | Claude Haiku 5.5 | Anthropic | 0 | 1000000/936000/128000 | M | claude-haiku-5-5-20261006 | versatile adaptive-only free-choice system-turns no-search edits texts effort=low,medium,high,max structured vision=5 | 100/500/10/125
claude-haiku-4.5 | Claude Haiku 4.5 | Anthropic | 0 | 200000/136000/64000 | CM | claude-haiku-4-5-20251001 | versatile no-search edits budget=1024-32000 vision=5 whole=16000 | 100/500/10/125
gemini-3.8-flash | Gemini 3.8 Flash | Google | 0 | 1000000/936000/64000 | C | gemini-3.8-flash | lightweight no-search budget=256-32000 effort=minimal,low,medium,high vision=10 | 50/300/5
gemini-3.1-pro-preview | Gemini 3.1 Pro | Google | 0 | 1000000/936000/64000 | C | gemini-3.1-pro-preview | powerful edu preview no-search budget=256-32000 effort=low,medium,high vision=10 long=200000 | 200/1200/20
gpt-5.5 | GPT-5.5 | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-5.5-2026-05-20 | powerful max search effort=none,low,medium,high,xhigh structured vision=1 phases long=272000 | 500/3000/50
gpt-5.4 | GPT-5.4 | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-5.4-2026-03-05 | powerful paid search effort=none,low,medium,high,xhigh structured vision=1 phases long=272000 | 250/1500/25
gpt-6-astra | GPT-6 Astra | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-astra-2026-09-10 | powerful max hidden disabled search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 1000/5000/100/1250
gpt-6-sol | GPT-6 Sol | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-sol-2026-09-10 | versatile paid search effort=none,low,medium,high,xhigh,max structured vision=1 phases long=272000 | 200/1000/20/250
gpt-6-luna | GPT-6 Luna | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-luna-2026-09-10 | lightweight no-search texts effort=none,low,medium,high structured vision=1 phases long=200000 | 12.5/75/1.25/15.625
grok-4.7 | Grok 4.7 | xAI | 0 | 1000000/872000/128000 | R | grok-4.7 | powerful paid no-search effort=low,medium,high structured vision=1 long=200000 long-at | 300/1500/75
gpt-5-mini | GPT-5 mini | Azure OpenAI | 0 | 264000/128000/64000 | CRW | gpt-5-mini-2025-08-07 | lightweight default effort=low,medium,high structured vision=1 | 25/200/2
gpt-4o-mini-2024-07-18 | GPT-4o mini | Azure OpenAI | 0 | 128000/12288/4096 | - | gpt-4o-mini-2024-07-18 | hidden family=gpt-4o-mini no-policy | 0/0/0
text-embedding-3-small | Embedding V3 small | Azure OpenAI | 0 | - | - | text-embedding-3-small | hidden no-policy embeddings dimensions inputs=512 | 0/0/0`;

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

const catalogues = { A: readTable(generationA), C: readTable(generationC), D: readTable(november) };

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
    ...(demo.generation !== "A" && { model_picker_price_category: priceCategory(demo, model) }),
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

function priceCategory({ generation }: DemoState, { prices: { input } }: Model): string {
  if (generation === "D" && input >= 800) return "very_high";
  const high = generation === "D" ? 400 : 500;
  return input >= high ? "high" : input >= 200 ? "medium" : "low";
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
