/** The models of providers: what the owner's config says of them, and what each provider lists itself. */
import type { ProviderConfig } from "../../../config/provider-schema";
import type { ModelFacts } from "../../../dialects/hub/model";
import type { Logger } from "../../../lib/logger";
import type { CallLimits } from "../../../lib/net/out/clock";
import { withTimeLimit } from "../../../lib/net/time-limit";
import { isKnownFor, namedAbilities } from "../models/known-models";
import { ListCache } from "../models/list-cache";
import type { Model } from "../models/model";
import type { Price } from "../models/price-list";
import type { Provider, Providers } from "./provider";
import { fetchProviderModels, type ProviderModelFacts } from "./provider-model-list";

/** A model of a provider; its id in lists and in the history begins with the provider's name. */
interface ProviderModel {
  model: Model;
  /** The same as the provider knows it. */
  upstreamModel: ModelFacts;
  provider: Provider;
}

interface ProvidedModels {
  models: Model[];
  /** The list of at least one provider could not be fetched now. */
  stale: boolean;
  /** The names of the providers whose models are all in the list. */
  complete: ReadonlySet<string>;
}

interface Options {
  providers: Providers;
  logger: Logger;
  limits: CallLimits;
  /** Milliseconds. */
  monotonic(): number;
}

/** Milliseconds: how long a request waits for a list, and how long a list of all models does. */
const requestTimeoutMs = 1_000;
const listTimeoutMs = 3_000;
/** A longer list is not offered to tools as a whole. */
const maxPicked = 50;

export class ProviderModels {
  /** By the provider in the config: a changed config begins anew. */
  readonly #lists: ListCache<ProviderConfig, ReadonlyMap<string, ProviderModelFacts>>;

  constructor(private readonly options: Options) {
    this.#lists = new ListCache(options.monotonic);
  }

  /**
   * The model that a client named `<provider>/<model>`; undefined if no provider has this name. Any model can be named,
   * because a list may be incomplete. A list that is not known yet is waited for a moment: it may have the price.
   */
  find(name: string): Promise<ProviderModel> | ProviderModel | undefined {
    const found = this.options.providers.findByModel(name);
    if (!found) return undefined;
    return this.#findAt(found.provider, found.model);
  }

  #findAt(provider: Provider, model: string): Promise<ProviderModel> | ProviderModel {
    if (this.#lists.get(provider.settings) || provider.settings.models) {
      // A list that is out of date is fetched again in the background.
      if (!provider.settings.models) void this.#load(provider, 0);
      return this.known(provider, model);
    }
    return this.#load(provider, requestTimeoutMs).then(() => this.known(provider, model));
  }

  /** The model as it is known now. */
  known(provider: Provider, id: string): ProviderModel {
    const list = this.#lists.get(provider.settings);
    const own = configured(provider.settings).find((model) => model.id === id);
    const isPicked = own !== undefined || (list?.size ?? 0) <= maxPicked;
    return providerModel(provider, { ...list?.get(id), ...own, id }, isPicked);
  }

  /** Whether the config or the provider's list names the model, whose id may begin with the provider's name. */
  isListed(provider: string, id: string): boolean {
    const { providers } = this.options;
    if (!providers.names().includes(provider)) return false;
    const ids = this.#idsOf(providers.find(provider));
    return ids.includes(id) || (id.startsWith(`${provider}/`) && ids.includes(id.slice(provider.length + 1)));
  }

  /** The models of all providers. A provider that does not answer is left out, or has its last list. */
  async all(): Promise<ProvidedModels> {
    const { providers } = this.options;
    const every = providers.names().map((name) => providers.find(name));
    const listed = every.filter(({ settings }) => !settings.models);
    await Promise.all(listed.map((provider) => this.#load(provider, listTimeoutMs)));
    const isStale = ({ settings }: Provider) => !this.#lists.fresh(settings);
    const unlisted = new Set(listed.filter(isStale).map(({ name }) => name));
    return {
      models: every.flatMap((provider) => this.#idsOf(provider).map((id) => this.known(provider, id).model)),
      stale: unlisted.size > 0,
      complete: new Set(every.filter(({ name }) => !unlisted.has(name)).map(({ name }) => name)),
    };
  }

  #idsOf({ settings }: Provider): string[] {
    if (settings.models) return configured(settings).map(({ id }) => id);
    return [...(this.#lists.get(settings)?.keys() ?? [])];
  }

  /** Fetches the list, unless it is known or has just failed. Waits at most this long after the fetch began. Never rejects. */
  async #load(provider: Provider, timeoutMs: number): Promise<void> {
    const { settings } = provider;
    if (this.#lists.fresh(settings) || this.#lists.recentFailure(settings)) return;
    const done = this.#lists.fetch(settings, () => this.#fetchList(provider)).catch(() => undefined); // already in the log
    await withTimeLimit(done, Math.max(0, timeoutMs - (this.#lists.waitedFor(settings) ?? 0)), () => undefined);
  }

  async #fetchList(provider: Provider): Promise<ReadonlyMap<string, ProviderModelFacts>> {
    const { limits, logger } = this.options;
    try {
      return new Map((await fetchProviderModels(provider, limits)).map((model) => [model.id, model]));
    } catch (thrown) {
      logger.warn(`The model list of the provider ${provider.name} could not be fetched.`, thrown);
      throw thrown;
    }
  }
}

/** As the config documents them: the cache costs what plain input does unless the owner states something else. */
const configured = ({ models = [] }: ProviderConfig): ProviderModelFacts[] =>
  models.map((model) => {
    if (typeof model === "string") return { id: model };
    const { price } = model;
    return price ? { ...model, price: { cachedInput: price.input, cacheWrite: price.input, ...price } } : model;
  });

function providerModel(provider: Provider, facts: ProviderModelFacts, isPicked: boolean): ProviderModel {
  const { name, dialect, settings } = provider;
  const { id, tools = true, vision = true, structuredOutputs = true, adaptiveThinking = false } = facts;
  const kind = facts.kind ?? (/embed/i.test(id) ? "embeddings" : "chat");
  const model: Model = {
    id: `${name}/${id}`,
    name: facts.name ?? id,
    vendor: name,
    version: id,
    kind,
    preview: false,
    light: isKnownFor("light", id),
    picked: isPicked,
    enabled: true,
    dialects: facts.kind === "embeddings" ? [] : [dialect],
    price: priceOf(facts.price),
    limits: { context: facts.context, prompt: facts.prompt, output: facts.output },
    supports: {
      tools,
      parallelTools: tools,
      vision,
      structuredOutputs,
      adaptiveThinking,
      thinkingBudget: facts.thinkingBudget,
      efforts: facts.reasoningEfforts ?? [],
      ...namedAbilities(id),
    },
    provider: {
      maxTokens: settings.maxTokens,
      thinking: settings.thinking,
      assumed: (["tools", "vision", "structuredOutputs"] as const).filter((ability) => facts[ability] === undefined),
    },
  };
  return { model, upstreamModel: { ...model, id }, provider };
}

/** One AI credit is one US cent. */
const creditsPerDollar = 100;

/** The price in AI credits. */
function priceOf(price: ProviderModelFacts["price"]): Price {
  if (!price) return { premium: false };
  const credits = (dollars: number) => dollars * creditsPerDollar;
  const known = (dollars: number | undefined) => (dollars === undefined ? undefined : credits(dollars));
  const { input, output, cachedInput, cacheWrite } = price;
  return {
    premium: false,
    tokens: {
      per: 1_000_000,
      input: credits(input),
      output: credits(output),
      cachedInput: known(cachedInput),
      cacheWrite: known(cacheWrite),
      cacheWriteHour: undefined,
    },
  };
}
