/** The live catalogue as the owner sees it: what each model can do, what it costs, and who may use it. */
import type { App } from "../../app";
import { dialects } from "../../dialects/hub/conversation";
import { ProxyError } from "../../errors";
import { endpointOf } from "../../upstream/copilot";
import type { Model, Price } from "../../upstream/model";

/** What the upstream did not say is null. */
export interface ModelItem {
  id: string;
  name: string;
  vendor: string;
  /** What the id resolves to, often the same. */
  version: string;
  kind: Model["kind"];
  preview: boolean;
  /** Offered in the official model picker. */
  picked: boolean;
  /** False: its terms must be accepted first, in GitHub's settings. */
  enabled: boolean;
  /** The upstream's paths it is offered at. */
  endpoints: string[];
  limits: {
    context: number | null;
    prompt: number | null;
    output: number | null;
    /** A longer answer comes only as a stream. */
    full_output: number | null;
    /** Texts of one embeddings call. */
    inputs: number | null;
    images: number | null;
    image_bytes: number | null;
    media_types: string[] | null;
  };
  supports: {
    tools: boolean;
    parallel_tools: boolean;
    vision: boolean;
    structured_outputs: boolean;
    adaptive_thinking: boolean;
    thinking_budget: { min: number; max: number } | null;
    reasoning_efforts: string[];
  };
  price: {
    premium: boolean;
    /** Premium units of one request of a person's. */
    units: number | null;
    /** AI credits per so many tokens. */
    tokens: (TokenPrice & { per: number }) | null;
    /** The same for prompts above so many tokens. */
    long: (TokenPrice & { above: number }) | null;
  };
  /** The accounts whose own list has it. */
  accounts: string[];
  /** Other names the config gives it. */
  aliases: string[];
  /** Fields it refused lately; they are left out until then. */
  refused_fields: { field: string; until_ms: number }[];
}

export interface TokenPrice {
  input: number;
  output: number;
  cached_input: number;
  cache_write: number;
}

/** @throws ProxyError when no list can be had and none is remembered. */
export async function modelItems(app: App): Promise<ModelItem[]> {
  const models = await app.catalogue.models();
  const unsupported = app.unsupportedParams.all();
  const aliases = Object.entries(app.config.current.modelAliases);
  return models.map((model) => ({
    ...showModel(model),
    accounts: app.accounts.filter((account) => app.catalogue.offers(account, model.id)).map(({ id }) => id),
    aliases: aliases.filter(([, id]) => id === model.id).map(([alias]) => alias),
    refused_fields: unsupported
      .filter((param) => param.model === model.id)
      .map(({ pattern, until }) => ({ field: pattern, until_ms: until })),
  }));
}

/**
 * The field is no longer left out; all that the model refused are not, when none is named.
 * @throws ProxyError `not_found` when none is remembered.
 */
export function forgetField(app: App, model: string, field?: string): void {
  if (!app.unsupportedParams.forget(model, field))
    throw new ProxyError("not_found", "No such field of this model is remembered: its hour may be over.");
}

function showModel(model: Model): Omit<ModelItem, "accounts" | "aliases" | "refused_fields"> {
  const { id, name, vendor, version, kind, preview, picked, enabled, limits, supports } = model;
  return {
    id,
    name,
    vendor,
    version,
    kind,
    preview,
    picked,
    enabled,
    endpoints: kind === "embeddings" ? ["/embeddings"] : endpointsOf(model),
    limits: {
      context: limits.context ?? null,
      prompt: limits.prompt ?? null,
      output: limits.output ?? null,
      full_output: limits.fullOutput ?? null,
      inputs: limits.inputs ?? null,
      images: limits.vision?.images ?? null,
      image_bytes: limits.vision?.imageBytes ?? null,
      media_types: limits.vision?.mediaTypes ?? null,
    },
    supports: {
      tools: supports.tools,
      parallel_tools: supports.parallelTools,
      vision: supports.vision,
      structured_outputs: supports.structuredOutputs,
      adaptive_thinking: supports.adaptiveThinking,
      thinking_budget: supports.thinkingBudget ?? null,
      reasoning_efforts: supports.efforts,
    },
    price: showPrice(model.price),
  };
}

const endpointsOf = (model: Model) =>
  dialects.filter((dialect) => model.dialects.includes(dialect)).map((dialect) => endpointOf[dialect]);

function showPrice({ premium, units, tokens, long }: Price): ModelItem["price"] {
  return {
    premium,
    units: units ?? null,
    tokens: tokens ? { per: tokens.per, ...showTokenPrice(tokens) } : null,
    long: long ? { above: long.above, ...showTokenPrice(long) } : null,
  };
}

const showTokenPrice = ({ input, output, cachedInput, cacheWrite }: Omit<NonNullable<Price["tokens"]>, "per">) => ({
  input,
  output,
  cached_input: cachedInput,
  cache_write: cacheWrite,
});
