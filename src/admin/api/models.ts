/** The models in the admin API: abilities, limits, price, and the accounts that have them. */
import type { z } from "zod";
import { dialects } from "../../dialects/hub/conversation";
import { embeddingsPaths, upstreamPaths } from "../../lib/api-paths";
import type { Scope } from "../../parts/app";
import type { Account } from "../../people/accounts/account";
import { matchesAny } from "../../people/keys/client-keys";
import { isAutoName } from "../../proxy/upstream/copilot/auto-model";
import { allModels } from "../../proxy/upstream/models/all-models";
import type { Model } from "../../proxy/upstream/models/model";
import { modelAbilities } from "../../proxy/upstream/models/model-abilities";
import type { Price, TokenPrice } from "../../proxy/upstream/models/price-list";
import { clientLimitsOf } from "../../proxy/upstream/models/prompt-limit";
import type { modelSchema } from "./schemas";

export type ModelItem = z.infer<typeof modelSchema>;

/** For a member only models that the owner allows them. @throws ProxyError when the list cannot be fetched and none is cached. */
export async function modelItems(app: Scope): Promise<ModelItem[]> {
  const allowed = modelsAllowed(app);
  const models = (await allModels(app, "cached")).models.filter(({ id }) => matchesAny(allowed, id));
  const unsupported = app.unsupportedParams.all();
  const aliases = Object.entries(app.config.current.modelAliases);
  return models.map((model) => ({
    ...showModel(model, app),
    accounts: model.provider
      ? []
      : app.accounts.filter((account) => mayBeAsked(app, account, model)).map(({ id }) => id),
    aliases: aliases.filter(([, id]) => id === model.id).map(([alias]) => alias),
    refused_fields: unsupported
      .filter((param) => param.model === model.id)
      .map(({ pattern, until }) => ({ field: pattern, until_ms: until })),
  }));
}

/** A chat model that is named is refused where the plan has nothing but Auto, unless names mean `auto` there. */
const mayBeAsked = ({ catalogue, config }: Scope, account: Account, { id, kind }: Model): boolean =>
  catalogue.offers(account, id) &&
  (isAutoName(id) || kind !== "chat" || config.current.autoWhenOnly || !catalogue.isAutoOnly(account));

/** Patterns of the models that the owner allows a member; null for all models. */
export const modelsAllowed = ({ membership }: Scope): readonly string[] | null => membership?.self?.models ?? null;

function showModel(
  model: Model,
  { config, tokenCounts }: Scope,
): Omit<ModelItem, "accounts" | "aliases" | "refused_fields"> {
  const { ratio = config.current.tokenEstimateMultiplier, requests = 0 } = tokenCounts.ratioOf(model.id) ?? {};
  const { id, name, vendor, version, kind, preview, picked, enabled, limits } = model;
  const { context, prompt } = clientLimitsOf(model, config.current);
  return {
    id,
    name,
    vendor,
    version,
    kind,
    preview,
    picked,
    lightweight: model.light,
    price_category: model.priceCategory ?? null,
    enabled,
    absent: model.isAbsent === true,
    provider: model.provider ? vendor : null,
    assumed: [...(model.provider?.assumed ?? [])],
    warnings: [...(model.warnings ?? [])],
    endpoints: kind === "embeddings" ? [embeddingsPaths.upstream] : endpointsOf(model),
    limits: {
      context: context ?? null,
      prompt: prompt ?? null,
      upstream_prompt: limits.prompt ?? null,
      output: limits.output ?? null,
      full_output: limits.fullOutput ?? null,
      inputs: limits.inputs ?? null,
      images: limits.vision?.images ?? null,
      image_bytes: limits.vision?.imageBytes ?? null,
      media_types: limits.vision?.mediaTypes ?? null,
    },
    supports: modelAbilities(model),
    price: showPrice(model.price),
    token_count: { ratio, requests },
  };
}

const endpointsOf = (model: Model) =>
  dialects.filter((dialect) => model.dialects.includes(dialect)).map((dialect) => upstreamPaths[dialect]);

function showPrice({ premium, units, tokens, long, isBoundaryUnknown, promotion }: Price): ModelItem["price"] {
  return {
    premium,
    units: units ?? null,
    tokens: tokens ? { per: tokens.per, ...showTokenPrice(tokens) } : null,
    long: long ? { above: long.above, ...showTokenPrice(long) } : null,
    boundary_unknown: isBoundaryUnknown === true,
    promotion: promotion
      ? {
          discount_percent: promotion.discount ?? null,
          ends_at_ms: promotion.endsAt ?? null,
          message: promotion.message ?? null,
        }
      : null,
  };
}

export const showTokenPrice = ({ input, output, cachedInput, cacheWrite, cacheWriteHour }: TokenPrice) => ({
  input,
  output,
  cached_input: cachedInput ?? null,
  cache_write: cacheWrite ?? null,
  cache_write_hour: cacheWriteHour ?? null,
});
