/** Where a request goes: which model, and in which dialect of the upstream. */
import { embeddingsPaths, upstreamPaths } from "../api-paths";
import type { App } from "../app";
import type { Conversation, Dialect } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { type ClientKey, requireModel } from "../keys/client-keys";
import type { Model } from "../upstream/model";
import { findModel } from "../upstream/model-name";
import type { Provider } from "../upstream/provider";

export type TargetParts = Pick<App, "catalogue" | "config">;

export interface Target {
  model: Model;
  /** Null for embeddings, which have no dialect. */
  dialect: Dialect | null;
  /** The upstream's path. */
  endpoint: string;
}

/** What the record keeps of a target. Of a provider's model only the name is known. */
export type KnownTarget = Omit<Target, "model"> & { model: Pick<Model, "id" | "price"> };

/** @param model As the client wrote it; the provider resolves it. */
export function providerTarget({ name }: Provider, model: string): KnownTarget {
  return {
    model: { id: model, price: { premium: false } },
    dialect: "messages",
    endpoint: `provider:${name}/v1/messages`,
  };
}

/** The upstream dialects for each client dialect, the most faithful first; the first one that the model offers is used. */
const preference: Record<Dialect, Dialect[]> = {
  messages: ["messages", "responses", "chat"],
  responses: ["responses", "messages", "chat"], // messages before chat: signatures survive there
  chat: ["chat", "responses", "messages"],
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
  client: Dialect,
  key: ClientKey | undefined,
): Promise<Target & { dialect: Dialect }> {
  const models = parts.catalogue.presentModels() ?? (await parts.catalogue.models());
  const model = findUsable(parts, name, key, models);
  const dialect = preference[client].find((candidate) => model.dialects.includes(candidate));
  if (!dialect)
    throw new ProxyError(
      "invalid_request",
      `\`${model.id}\` is not a chat model and cannot be used at this endpoint.`,
      {
        param: "model",
      },
    );
  return { model, dialect, endpoint: upstreamPaths[dialect] };
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or is not an embeddings model; `permission`. */
export async function chooseEmbeddingsTarget(
  parts: TargetParts,
  name: string,
  key: ClientKey | undefined,
): Promise<Target> {
  const model = findUsable(parts, name, key, await parts.catalogue.models());
  if (model.kind !== "embeddings")
    throw new ProxyError("invalid_request", `\`${model.id}\` is not an embeddings model.`, { param: "model" });
  return { model, dialect: null, endpoint: embeddingsPaths.upstream };
}

function findUsable(
  { config }: TargetParts,
  name: string,
  key: ClientKey | undefined,
  models: readonly Model[],
): Model {
  const model = findModel(name, models, config.current.modelAliases);
  requireModel(key, model.id);
  if (!model.enabled)
    throw new ProxyError(
      "not_found",
      `\`${model.id}\` is listed but not enabled for your account: enable it at https://github.com/settings/copilot/features.`,
      { param: "model", code: "model_not_enabled" },
    );
  return model;
}
