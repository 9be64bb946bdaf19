/** The models in the admin API: abilities, limits, price, and the accounts that have them. */
import type { z } from "zod";
import { embeddingsPaths, upstreamPaths } from "../../api-paths";
import type { App } from "../../app";
import { dialects } from "../../dialects/hub/conversation";
import { ProxyError } from "../../errors";
import type { Model, Price } from "../../upstream/model";
import { modelAbilities } from "../../upstream/model-abilities";
import type { modelSchema } from "./schemas";

export type ModelItem = z.infer<typeof modelSchema>;

/** @throws ProxyError when the list cannot be fetched and none is cached. */
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
 * Sends a field that the model rejected to it again; without `field`, all of them.
 * @throws ProxyError `not_found` when no such field is on record.
 */
export function forgetField(app: App, model: string, field?: string): void {
  if (!app.unsupportedParams.forget(model, field))
    throw new ProxyError("not_found", "No such field of this model is remembered: its hour may be over.");
}

function showModel(model: Model): Omit<ModelItem, "accounts" | "aliases" | "refused_fields"> {
  const { id, name, vendor, version, kind, preview, picked, enabled, limits } = model;
  return {
    id,
    name,
    vendor,
    version,
    kind,
    preview,
    picked,
    enabled,
    endpoints: kind === "embeddings" ? [embeddingsPaths.upstream] : endpointsOf(model),
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
    supports: modelAbilities(model),
    price: showPrice(model.price),
  };
}

const endpointsOf = (model: Model) =>
  dialects.filter((dialect) => model.dialects.includes(dialect)).map((dialect) => upstreamPaths[dialect]);

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
