/** Where a request goes: which model, and in which dialect of the upstream. */
import { embeddingsPaths, upstreamPaths } from "../api-paths";
import type { App } from "../app";
import type { ClientDialect, Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { type ClientKey, hasModelLimits, requireModel } from "../keys/client-keys";
import type { Model } from "../upstream/model";
import type { Provider, ProviderOperation } from "../upstream/provider";
import { type AskedModel, findNamedModel, type NamedModel, type NamedModelParts } from "./named-model";

export type TargetParts = NamedModelParts;

export interface Target extends NamedModel {
  /** Null for embeddings, which have no dialect. */
  dialect: Dialect | null;
  /** The upstream's path; for the record, that of a provider begins with its name. */
  endpoint: string;
}

/** Of a request for a reply. */
export type ChatTarget = Target & { dialect: Dialect };

export const isProvided = <T extends Target>(target: T): target is T & { provider: Provider } =>
  target.provider !== undefined;

/** Who is called, for sentences. */
export const whoOf = ({ provider }: Pick<Target, "provider">): string => provider?.who ?? "GitHub Copilot";

/**
 * OpenRouter serves with one of the body's `models` where the model itself fails.
 * @throws ProxyError `permission` if the key may not use one of them.
 */
export function requireFurtherModels(
  key: ClientKey | undefined,
  provider: Pick<Provider, "name"> | undefined,
  { models }: JsonObject,
): void {
  if (!hasModelLimits(key) || !provider || !Array.isArray(models)) return;
  for (const model of models) requireModel(key, `${provider.name}/${model}`);
}

/** What the record keeps of a target. */
export type KnownTarget = Pick<Target, "dialect" | "endpoint" | "provider"> & { model: Pick<Model, "id" | "price"> };

/** @param model As the client wrote it; the provider resolves it. */
export function providerTarget(
  { providerModels }: Pick<App, "providerModels">,
  provider: Provider,
  model: string,
): KnownTarget {
  return {
    model: { id: model, price: providerModels.known(provider, model).model.price },
    provider,
    dialect: provider.dialect,
    endpoint: endpointOf(provider, "generate"),
  };
}

const endpointOf = (provider: Provider, operation: ProviderOperation) =>
  `provider:${provider.name}${provider.pathOf(operation)}`;

/** The upstream dialects for each client dialect, the most faithful first; the first one that the model offers is used. */
const preference: Record<ClientDialect, Dialect[]> = {
  messages: ["messages", "responses", "chat"],
  responses: ["responses", "messages", "chat"], // messages before chat: signatures survive there
  chat: ["chat", "responses", "messages"],
  gemini: ["messages", "responses", "chat"], // as for responses
};

/** Whether a full answer has to be requested as a stream: some models give long answers only so. The messages dialect always has a maximum. */
export function needsStream({ maxTokens }: Conversation, { model, dialect }: Target): boolean {
  const { fullOutput, output } = model.limits;
  const max = maxTokens ?? (dialect === "messages" ? output : undefined);
  return fullOutput !== undefined && max !== undefined && max > fullOutput;
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or cannot hold a conversation; `permission` if the key may not use it. */
export async function chooseTarget(
  parts: TargetParts,
  name: string,
  client: ClientDialect,
  key: ClientKey | undefined,
): Promise<ChatTarget> {
  const { model, upstreamModel, provider } = await findUsable(parts, { name, client, key });
  const dialect = preference[client].find((candidate) => model.dialects.includes(candidate));
  if (!dialect)
    throw new ProxyError(
      "invalid_request",
      `\`${model.id}\` is not a chat model and cannot be used at this endpoint.`,
      {
        param: "model",
      },
    );
  const endpoint = provider ? endpointOf(provider, "generate") : upstreamPaths[dialect];
  return { model, upstreamModel, provider, dialect, endpoint };
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or is not an embeddings model; `permission`. */
export async function chooseEmbeddingsTarget(
  parts: TargetParts,
  name: string,
  client: ClientDialect,
  key: ClientKey | undefined,
): Promise<Target> {
  const { model, upstreamModel, provider } = await findUsable(parts, { name, client, key });
  // The messages dialect has no embeddings. Of other providers' models the kind may be only a guess.
  if (!(provider ? provider.dialect !== "messages" : model.kind === "embeddings"))
    throw new ProxyError("invalid_request", `\`${model.id}\` is not an embeddings model.`, { param: "model" });
  const endpoint = provider ? endpointOf(provider, "embed") : embeddingsPaths.upstream;
  return { model, upstreamModel, provider, dialect: null, endpoint };
}

/** @throws ProxyError `not_found`, `permission`. */
async function findUsable(parts: TargetParts, asked: AskedModel & { key?: ClientKey }): Promise<NamedModel> {
  const named = await findNamedModel(parts, asked);
  const { model } = named;
  requireModel(asked.key, model.id);
  if (!model.enabled)
    throw new ProxyError(
      "not_found",
      `\`${model.id}\` is listed but not enabled for your account: enable it at https://github.com/settings/copilot/features.`,
      { param: "model", code: "model_not_enabled" },
    );
  return named;
}
