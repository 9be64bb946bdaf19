/** Where a request goes: which model, and in which dialect of the upstream. */

import { codecs } from "../../dialects/codecs";
import type { ClientDialect, Dialect, JsonObject } from "../../dialects/hub/conversation";
import { clientPaths, embeddingsPaths, upstreamPaths } from "../../lib/api-paths";
import { ProxyError } from "../../lib/errors";
import { type ClientKey, hasModelLimits, requireModel, requireUnrevoked } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import type { AutoChoice } from "../upstream/copilot/auto";
import { autoOnlyError, isAutoName } from "../upstream/copilot/auto-model";
import type { Model } from "../upstream/models/model";
import { aliasOf } from "../upstream/models/model-name";
import type { Provider, ProviderOperation } from "../upstream/providers/provider";
import {
  type AskedModel,
  autoNamed,
  findNamedModel,
  listOrNothing,
  type NamedModel,
  presentModel,
} from "./named-model";

export interface Target extends NamedModel {
  /** Null for embeddings, which have no dialect. */
  dialect: Dialect | null;
  /** The upstream's path; for the book, that of a provider begins with its name. */
  endpoint: string;
  /** How Auto chose the model: it is served by this account only. */
  choice?: AutoChoice;
  /** Auto does not name the model before the answer does: finds it by the name there. */
  named?(model: string): Pick<Model, "id" | "price">;
  /** The owner's route that chose it. */
  route?: string;
}

/** Where a request for a reply goes. */
export type ChatTarget = Target & { dialect: Dialect };

export const isProvided = <T extends Target>(target: T): target is T & { provider: Provider } =>
  target.provider !== undefined;

/** The model is still to be chosen, by {@link serveByAuto}. */
export const isAutoTarget = ({ model, provider, choice }: NamedModel & Pick<Partial<Target>, "choice">): boolean =>
  isAutoName(model.id) && !provider && !choice;

/** Names the model that served, where the client asked by another name, or with a chain of models. */
export const modelHeader = "x-dragoman-model";

/** A provider's model may have any name; a header holds ASCII. */
export const modelInHeader = (id: string): string =>
  id.replace(/[^ -~]+/g, (letters) => encodeURIComponent(letters.toWellFormed()));

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

/** What the book keeps of a target. */
export type KnownTarget = Pick<Target, "dialect" | "endpoint" | "provider" | "choice" | "named" | "route"> & {
  model: Pick<Model, "id" | "price"> & Partial<Pick<Model, "limits" | "vendor">>;
};

/**
 * A model of the provider in the address of the request.
 * @param name As the client wrote it; the provider resolves it.
 * @throws ProxyError `permission` if the key may not use it.
 */
export function directTarget(
  { providerModels }: Pick<RequestScope, "providerModels">,
  provider: Provider,
  name: string,
  key: ClientKey | undefined,
): ChatTarget & { provider: Provider } {
  requireModel(key, `${provider.name}/${name}`);
  const { model, upstreamModel } = providerModels.known(provider, name);
  const endpoint = endpointOf(provider, "generate");
  return { model: { ...model, id: name }, upstreamModel, provider, dialect: provider.dialect, endpoint };
}

/** A provider that can be called at paths of its own. @throws ProxyError `not_found` */
export function messagesProvider({ providers }: Pick<RequestScope, "providers">, name: string): Provider {
  const provider = providers.find(name);
  if (provider.dialect === "messages") return provider;
  throw new ProxyError(
    "not_found",
    `${provider.who} has no paths of its own, because it does not offer the Messages API: use its models at ${clientPaths.messages} and the other paths as \`${name}/<model>\`.`,
    { code: "provider_not_found" },
  );
}

const endpointOf = (provider: Provider, operation: ProviderOperation) =>
  `provider:${provider.name}${provider.pathOf(operation)}`;

/** Undefined if the model holds no conversations. */
export function preferredDialect(client: ClientDialect, { dialects }: Pick<Model, "dialects">): Dialect | undefined {
  for (const candidate of codecs[client].facts.upstreams) if (dialects.includes(candidate)) return candidate;
}

/** Whether a full answer has to be requested as a stream: some models give long answers only so. The messages dialect always has a maximum. */
export function needsStream(maxTokens: number | undefined, { model, dialect }: Target): boolean {
  const { fullOutput, output } = model.limits;
  const max = maxTokens ?? (dialect === "messages" ? output : undefined);
  return fullOutput !== undefined && max !== undefined && max > fullOutput;
}

/**
 * The target, where the lists that are present name its model. Undefined where {@link chooseTarget} has to look it up.
 * @throws ProxyError as {@link chooseTarget}.
 */
export function presentTarget(
  parts: RequestScope,
  name: string,
  client: ClientDialect,
  key: ClientKey | undefined,
): ChatTarget | undefined {
  const named = parts.config.current.autoWhenOnly ? undefined : presentModel(parts, { name, client });
  return named && chatTarget(usable(named, key), client);
}

/** @throws ProxyError `not_found`, `invalid_request` for a model that does not exist or cannot hold a conversation; `permission` if the key may not use it. */
export async function chooseTarget(
  parts: RequestScope,
  name: string,
  client: ClientDialect,
  key: ClientKey | undefined,
): Promise<ChatTarget> {
  return chatTarget(await findChatModel(parts, { name, client, key }), client);
}

function chatTarget({ model, upstreamModel, provider }: NamedModel, client: ClientDialect): ChatTarget {
  const dialect = preferredDialect(client, model);
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
  parts: RequestScope,
  name: string,
  key: ClientKey | undefined,
): Promise<Target> {
  const { model, upstreamModel, provider } = await findUsable(parts, { name, client: "chat", key });
  // The messages dialect has no embeddings. Of other providers' models the kind may be only a guess.
  if (!(provider ? provider.dialect !== "messages" : model.kind === "embeddings"))
    throw new ProxyError("invalid_request", `\`${model.id}\` is not an embeddings model.`, { param: "model" });
  const endpoint = provider ? endpointOf(provider, "embed") : embeddingsPaths.upstream;
  return { model, upstreamModel, provider, dialect: null, endpoint };
}

/**
 * Accounts may have nothing but Auto. Other names then mean `auto` if the owner wants that; else the error says so.
 * @throws ProxyError `not_found`, `permission`.
 */
async function findChatModel(parts: RequestScope, asked: AskedModel & { key?: ClientKey }): Promise<NamedModel> {
  const { autoWhenOnly } = parts.config.current;
  if (autoWhenOnly && !parts.catalogue.presentModels()) await listOrNothing(parts);
  if (autoWhenOnly && haveOnlyAuto(parts) && !isOfProvider(parts, asked)) {
    requireUnrevoked(asked.key);
    return autoNamed(parts);
  }
  try {
    return await findUsable(parts, asked);
  } catch (thrown) {
    const isUnknown = thrown instanceof ProxyError && thrown.details.code === "model_not_found";
    throw isUnknown && haveOnlyAuto(parts) ? autoOnlyError(asked.name) : thrown;
  }
}

function isOfProvider({ config, providerModels }: RequestScope, { name }: AskedModel): boolean {
  const alias = aliasOf(name, config.current.modelAliases);
  return [name, alias ?? name].some((each) => providerModels.find(each) !== undefined);
}

/** Whether none of the accounts that could serve takes a named model. */
export function haveOnlyAuto({ accounts, catalogue }: Pick<RequestScope, "accounts" | "catalogue">): boolean {
  const able = accounts.filter(({ state }) => state.name !== "failed" && state.name !== "paused");
  return able.length > 0 && able.every((account) => catalogue.isAutoOnly(account));
}

/** @throws ProxyError `not_found`, `permission`. */
const findUsable = async (parts: RequestScope, asked: AskedModel & { key?: ClientKey }): Promise<NamedModel> =>
  usable(await findNamedModel(parts, asked), asked.key);

/** @throws ProxyError `not_found`, `permission`. */
function usable(named: NamedModel, key: ClientKey | undefined): NamedModel {
  const { model } = named;
  // With `auto`, the model that is chosen has to be one that the key may use.
  if (isAutoTarget(named)) requireUnrevoked(key);
  else requireModel(key, model.id);
  if (!model.enabled)
    throw new ProxyError(
      "not_found",
      `\`${model.id}\` is listed but not enabled for your account: enable it at https://github.com/settings/copilot/features.`,
      { param: "model", code: "model_not_enabled" },
    );
  return named;
}

/** A reply of several answers has read the window as often, and more; the list of a provider may have too small a window. */
const windowsOfReply = 16;
const [mostOfWindow, mostOfReply, mostOfEmbeddings] = [2 ** 20, 2 ** 25, 2 ** 31];

/** How many tokens a request can have at most. */
export function mostTokens(target: KnownTarget | undefined): number {
  if (target?.dialect == null) return mostOfEmbeddings;
  const { context } = target.model.limits ?? {};
  return context ? Math.max(mostOfWindow, windowsOfReply * context) : mostOfReply;
}
