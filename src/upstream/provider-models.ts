/** The models of providers: what the owner's config says of them. */
import type { ProviderModelConfig } from "../config/provider-schema";
import type { ModelFacts } from "../dialects/hub/model";
import type { Model, Price } from "./model";
import type { Provider } from "./provider";

/** A model of a provider for the lists and the history; its id there begins with the provider's name. */
export interface ProviderModel {
  model: Model;
  /** The same as the provider knows it. */
  upstreamModel: ModelFacts;
}

/** @param id The provider's id of the model. What is not known of it is assumed to be possible: the provider decides. */
export function providerModel(provider: Provider, id: string): ProviderModel {
  const { name, dialect, settings } = provider;
  const known = configured(provider).find((model) => model.id === id);
  const model: Model = {
    id: `${name}/${id}`,
    name: known?.name ?? id,
    vendor: name,
    version: id,
    kind: known?.kind ?? (/embed/i.test(id) ? "embeddings" : "chat"),
    preview: false,
    picked: true,
    enabled: true,
    dialects: known?.kind === "embeddings" ? [] : [dialect],
    price: priceOf(known?.price),
    limits: { context: known?.context, prompt: known?.prompt, output: known?.output },
    supports: {
      tools: known?.tools ?? true,
      parallelTools: known?.tools ?? true,
      vision: known?.vision ?? true,
      structuredOutputs: known?.structuredOutputs ?? true,
      adaptiveThinking: known?.adaptiveThinking ?? false,
      thinkingBudget: known?.thinkingBudget,
      efforts: known?.reasoningEfforts ?? [],
    },
  };
  const { maxTokens, thinking } = settings;
  return { model, upstreamModel: { ...model, id, provider: { maxTokens, thinking } } };
}

const configured = ({ settings }: Provider): ProviderModelConfig[] =>
  (settings.models ?? []).map((model) => (typeof model === "string" ? { id: model } : model));

/** One AI credit is one US cent. */
const creditsPerDollar = 100;

/** The owner's price in AI credits. */
function priceOf(price: ProviderModelConfig["price"]): Price {
  if (!price) return { premium: false };
  const { input, output, cachedInput = input, cacheWrite = input } = price;
  const credits = (dollars: number) => dollars * creditsPerDollar;
  return {
    premium: false,
    tokens: {
      per: 1_000_000,
      input: credits(input),
      output: credits(output),
      cachedInput: credits(cachedInput),
      cacheWrite: credits(cacheWrite),
    },
  };
}
