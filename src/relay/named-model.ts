/** The model that a client names: one of GitHub Copilot's, or one of a provider. */
import type { App } from "../app";
import type { ClientDialect } from "../dialects/hub/conversation";
import type { ModelFacts } from "../dialects/hub/model";
import { ProxyError } from "../errors";
import { googleAliases } from "../upstream/google-names";
import type { Model } from "../upstream/model";
import { aliasOf, findListed, findModel } from "../upstream/model-name";
import type { Provider } from "../upstream/provider";

export type NamedModelParts = Pick<App, "catalogue" | "config" | "providerModels">;

export interface NamedModel {
  model: Model;
  /** The model as its upstream knows it. */
  upstreamModel: ModelFacts;
  /** Missing for GitHub Copilot. */
  provider?: Provider;
}

export interface AskedModel {
  /** As the client wrote it. */
  name: string;
  client: ClientDialect;
}

/** Names of a dialect's own vendor that clients use though no account lists them. */
const vendorAliases: Partial<Record<ClientDialect, typeof googleAliases>> = { gemini: googleAliases };

/** Of a provider any model can be named, because its list may be incomplete. @throws ProxyError as {@link findModel}. */
export async function findNamedModel(parts: NamedModelParts, { name, client }: AskedModel): Promise<NamedModel> {
  const { catalogue, config, providerModels } = parts;
  const named = providerModels.find(name);
  if (named) return named;
  const aliases = config.current.modelAliases;
  const alias = aliasOf(name, aliases);
  const aliased = alias === undefined ? undefined : providerModels.find(alias);
  if (aliased) return listed(await listOrNothing(parts), name) ?? aliased;
  const models = catalogue.presentModels() ?? (await catalogue.models());
  const known = alias === undefined ? { ...vendorAliases[client]?.(name, models), ...aliases } : aliases;
  const model = findModel(name, models, known);
  return { model, upstreamModel: model };
}

function listed(models: readonly Model[], name: string): NamedModel | undefined {
  const model = findListed(name, models);
  return model && { model, upstreamModel: model };
}

/** A provider serves also while no account can. */
async function listOrNothing({ catalogue }: NamedModelParts): Promise<Model[]> {
  try {
    return catalogue.presentModels() ?? (await catalogue.models());
  } catch (thrown) {
    if (thrown instanceof ProxyError) return [];
    throw thrown;
  }
}
