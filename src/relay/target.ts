/** Where an exchange goes: which model, and in which dialect it is asked. */
import type { App } from "../app";
import type { Conversation, Dialect } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { endpointOf } from "../upstream/copilot";
import type { Model } from "../upstream/model";
import { findModel } from "../upstream/model-name";
import type { Provider } from "../upstream/provider";

export interface Target {
  model: Model;
  /** Null for embeddings, which are no conversation. */
  dialect: Dialect | null;
  /** The upstream's path. */
  endpoint: string;
}

/** What is remembered of where an exchange went; of a provider's models we know no more than the name. */
export type KnownTarget = Omit<Target, "model"> & { model: Pick<Model, "id" | "price"> };

/** @param model As the client spelt it: the provider knows. */
export function providerTarget({ name }: Provider, model: string): KnownTarget {
  return {
    model: { id: model, price: { premium: false } },
    dialect: "messages",
    endpoint: `provider:${name}/v1/messages`,
  };
}

/** For each client dialect the upstream dialects that keep most of it; the first one the model offers wins. */
const preference: Record<Dialect, Dialect[]> = {
  messages: ["messages", "responses", "chat"],
  responses: ["responses", "messages", "chat"], // messages before chat: signatures survive there
  chat: ["chat", "responses", "messages"],
};

/** Some models give long answers only as a stream; the messages dialect always says how long an answer may be. */
export function needsStream({ maxTokens }: Conversation, { model, dialect }: Target): boolean {
  const { fullOutput, output } = model.limits;
  const max = maxTokens ?? (dialect === "messages" ? output : undefined);
  return fullOutput !== undefined && max !== undefined && max > fullOutput;
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or cannot hold a conversation. */
export async function chooseTarget(app: App, name: string, client: Dialect): Promise<Target> {
  const model = await findUsable(app, name);
  const dialect = preference[client].find((each) => model.dialects.includes(each));
  if (!dialect)
    throw new ProxyError("invalid_request", `\`${model.id}\` is no chat model: it cannot be asked here.`, {
      param: "model",
    });
  return { model, dialect, endpoint: endpointOf[dialect] };
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or makes no embeddings. */
export async function chooseEmbeddingsTarget(app: App, name: string): Promise<Target> {
  const model = await findUsable(app, name);
  if (model.kind !== "embeddings")
    throw new ProxyError("invalid_request", `\`${model.id}\` makes no embeddings.`, { param: "model" });
  return { model, dialect: null, endpoint: "/embeddings" };
}

async function findUsable(app: App, name: string): Promise<Model> {
  const model = findModel(name, await app.catalogue.models(), app.config.current.modelAliases);
  if (!model.enabled)
    throw new ProxyError(
      "not_found",
      `\`${model.id}\` is listed but not enabled for your account: enable it at https://github.com/settings/copilot/features.`,
      { param: "model", code: "model_not_enabled" },
    );
  return model;
}
