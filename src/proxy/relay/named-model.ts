/** The model that a client names: one of GitHub Copilot's, or one of a provider. */

import { idFromClaudeCode } from "../../clients/claude-code-names";
import type { ClientDialect } from "../../dialects/hub/conversation";
import type { ModelFacts } from "../../dialects/hub/model";
import { ProxyError } from "../../lib/errors";
import type { RequestScope } from "../scope";
import { autoId, autoModel, isAutoName } from "../upstream/copilot/auto-model";
import { codexAliases } from "../upstream/models/codex-catalogue";
import { googleAliases } from "../upstream/models/google-names";
import type { Model } from "../upstream/models/model";
import { aliasOf, findListed, findModel } from "../upstream/models/model-name";
import type { Provider } from "../upstream/providers/provider";

type NamedModelParts = Pick<RequestScope, "catalogue" | "config" | "providerModels">;

export interface NamedModel {
  model: Model;
  /** The model as its upstream knows it. */
  upstreamModel: ModelFacts;
  /** Missing for GitHub Copilot. */
  provider?: Provider;
}

export interface AskedModel {
  /** The name as the client wrote it. */
  name: string;
  client: ClientDialect;
}

/** Names of a dialect's own vendor that clients use though no account lists them. */
const vendorAliases: Partial<Record<ClientDialect, typeof googleAliases>> = {
  gemini: googleAliases,
  responses: codexAliases,
};

const nameOf = ({ name, client }: AskedModel): string => (client === "messages" ? idFromClaudeCode(name) : name);

/**
 * The model, as far as the lists that are present name it: nearly always. Undefined where more is to be looked up. A client may
 * name any model of a provider, because the list of a provider may be incomplete.
 */
export function presentModel(
  { catalogue, providerModels }: NamedModelParts,
  asked: AskedModel,
): NamedModel | undefined {
  const name = nameOf(asked);
  if (isAutoName(name)) return undefined;
  const provided = providerModels.find(name);
  if (provided instanceof Promise) return undefined;
  const models = provided ? undefined : catalogue.presentModels();
  return provided ?? (models && listed(models, name));
}

/** @throws ProxyError as {@link findModel}. */
export async function findNamedModel(parts: NamedModelParts, asked: AskedModel): Promise<NamedModel> {
  const { client } = asked;
  const name = nameOf(asked);
  const { catalogue, config, providerModels } = parts;
  const aliases = config.current.modelAliases;
  if (isAutoName(name)) {
    // A name that the owner gave before GitHub did keeps its meaning: nobody is moved to Auto unasked.
    const own = Object.hasOwn(aliases, name) ? aliases[name]! : name;
    return isAutoName(own) ? autoNamed(parts, own) : findNamedModel(parts, { name: own, client });
  }
  const named = presentModel(parts, asked) ?? (await providerModels.find(name));
  if (named) return named;
  const present = catalogue.presentModels();
  const alias = aliasOf(name, aliases);
  const aliased =
    alias === undefined ? undefined : isAutoName(alias) ? await autoNamed(parts, alias) : providerModels.find(alias);
  if (aliased) return listed(present ?? (await listOrNothing(parts)), name) ?? aliased;
  const findIn = (list: readonly Model[]): NamedModel => {
    const model = findModel(name, list, aliases, vendorAliases[client]?.(name, list) ?? {});
    return { model, upstreamModel: model };
  };
  const models = present ?? (await catalogue.models());
  try {
    return findIn(models);
  } catch (thrown) {
    // A list may lack a model that the next one has, so a missing name is looked for in one more.
    const isMissing = thrown instanceof ProxyError && thrown.kind === "not_found";
    const later = isMissing ? await catalogue.modelsForMissing() : undefined;
    if (!later) throw thrown;
    return findIn(later);
  }
}

function listed(models: readonly Model[], name: string): NamedModel | undefined {
  const model = findListed(name, models);
  return model && { model, upstreamModel: model };
}

/** `auto` and its tiers may be asked for also where no list shows that they are offered. */
export async function autoNamed({ catalogue }: NamedModelParts, name: string = autoId): Promise<NamedModel> {
  const models = catalogue.presentModels() ?? (await catalogue.models());
  const model = findListed(name.toLowerCase(), models) ?? autoModel(models, name);
  return { model, upstreamModel: model };
}

/** The accounts' models; none while no account can list them, when providers still serve. */
export async function listOrNothing({ catalogue }: NamedModelParts): Promise<Model[]> {
  try {
    return await catalogue.models();
  } catch (thrown) {
    if (thrown instanceof ProxyError) return [];
    throw thrown;
  }
}
