/** A provider's own model list, read leniently: providers add to OpenAI's list what each of them knows. */
import type { ProviderModelConfig } from "../../../config/provider-schema";
import type { JsonObject } from "../../../dialects/hub/conversation";
import { countIn } from "../../../dialects/hub/json";
import { ProxyError } from "../../../lib/errors";
import { decimalIn, isObject, notJson, parseJson } from "../../../lib/json";
import { readText } from "../../../lib/net/out/body";
import type { CallLimits } from "../../../lib/net/out/clock";
import type { Provider } from "./provider";

const maxBytes = 8 * 1024 * 1024;
const maxModels = 5000;

/** What is known of a model. Members that no one states are missing. */
export type ProviderModelFacts = ProviderModelConfig;

/** @throws ProxyError naming the provider. */
export async function fetchProviderModels(provider: Provider, limits: CallLimits): Promise<ProviderModelFacts[]> {
  const response = await provider.call({ operation: "list", limits });
  const text = await readText(response, maxBytes);
  if (!response.ok) throw new ProxyError("upstream", `${provider.who} answered with status ${response.status}.`);
  const json = parseJson(text);
  if (json === undefined) throw notJson(`The model list of the provider ${provider.name}`);
  const data = isObject(json) ? (json.data ?? json.models) : json;
  if (!Array.isArray(data)) throw new ProxyError("upstream", `${provider.who}'s answer holds no model list.`);
  const models = new Map<string, ProviderModelFacts>();
  for (const item of data.slice(0, maxModels)) {
    const model = isObject(item) ? readItem(item) : undefined;
    if (model && !models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}

function readItem(item: JsonObject): ProviderModelFacts | undefined {
  const { id } = item;
  if (typeof id !== "string" || id === "" || id.length > 256) return undefined;
  const name = [item.display_name, item.name].find((each) => typeof each === "string" && each !== "");
  const top = isObject(item.top_provider) ? item.top_provider : {};
  return {
    id,
    name: typeof name === "string" ? name.slice(0, 256) : undefined,
    kind: item.kind === "embeddings" || item.type === "embedding" ? "embeddings" : undefined,
    context: firstCount(item, contextNames) ?? firstCount(top, contextNames),
    prompt: countIn(item.max_prompt_tokens) || undefined,
    output: firstCount(item, outputNames) ?? firstCount(top, outputNames),
    ...abilitiesIn(item),
    price: priceIn(item.pricing),
  };
}

/** OpenRouter, vLLM, Groq, LM Studio, Mistral, and dragoman itself. */
const contextNames = [
  "context_length",
  "max_model_len",
  "context_window",
  "max_context_length",
  "max_context_window_tokens",
];
const outputNames = ["max_completion_tokens", "max_output_tokens"];

function firstCount(holder: JsonObject, names: readonly string[]): number | undefined {
  return names.map((name) => countIn(holder[name])).find((count) => count !== undefined && count > 0);
}

/** OpenRouter lists modalities and parameters, Mistral and dragoman abilities. */
function abilitiesIn(item: JsonObject): Pick<ProviderModelFacts, "tools" | "vision" | "structuredOutputs"> {
  const parameters = item.supported_parameters;
  const architecture = isObject(item.architecture) ? item.architecture : {};
  const modalities = architecture.input_modalities;
  const abilities = isObject(item.capabilities) ? item.capabilities : {};
  const said = (...names: string[]) => names.map((name) => abilities[name]).find((each) => typeof each === "boolean");
  return {
    tools: Array.isArray(parameters) ? parameters.includes("tools") : (said("tools", "function_calling") as boolean),
    vision: Array.isArray(modalities) ? modalities.includes("image") : (said("vision") as boolean),
    structuredOutputs: Array.isArray(parameters)
      ? parameters.includes("structured_outputs")
      : (said("structured_outputs") as boolean),
  };
}

/** OpenRouter states US dollars per token, as texts; a negative price is none. */
function priceIn(pricing: unknown): ProviderModelFacts["price"] {
  if (!isObject(pricing)) return undefined;
  const perMillion = (name: string) => {
    const dollars = decimalIn(pricing[name]);
    return dollars !== undefined && dollars < 1 ? dollars * 1_000_000 : undefined;
  };
  const [input, output] = [perMillion("prompt"), perMillion("completion")];
  if (input === undefined || output === undefined) return undefined;
  return { input, output, cachedInput: perMillion("input_cache_read"), cacheWrite: perMillion("input_cache_write") };
}
