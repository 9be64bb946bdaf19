/** The models for a set-up, as the running server lists them to its clients. */
import { z } from "zod";
import { modelSchema } from "../../admin/api/schemas";
import { summaryOf } from "../../clients/model-summary";
import { type Choice, type ClientModel, chooseModels, isPlain } from "../../clients/models";
import { ProxyError } from "../../lib/errors";
import { findModel } from "../../proxy/upstream/models/model-name";
import { type ClientModelSource, clientModelSource, clientModels } from "../../proxy/upstream/models/model-view";
import { ask, askAsOwner, itemsOf, type RunningServer, readAs } from "../running-server";
import { UsageError } from "../usage-error";

export interface Offer {
  /** All models that can be called, including those that GitHub's own picker hides. */
  offered: readonly ClientModel[];
  choice: Choice;
}

/** @throws ProxyError if no model can serve an agent */
export async function modelsOf(server: RunningServer): Promise<Offer> {
  const offered = clientModels(await listedBy(server)).filter(isPlain);
  const choice = chooseModels(offered);
  if (choice) return { offered, choice };
  throw new ProxyError("upstream", `The server at ${server.url} offers no model that an agent can use.`);
}

/** The list of the admin API, which needs no client key; or the list for clients, which has no prices of tokens. */
async function listedBy(server: RunningServer): Promise<ClientModelSource[]> {
  const answer = await askAsOwner(server, "/api/admin/models");
  if (answer === undefined) {
    const list = z.object({ data: z.array(clientModelSource()) });
    return readAs(list, await ask(server, "/v1/models"), server).data;
  }
  const { items } = readAs(itemsOf(modelSchema), answer, server);
  return items
    .filter(({ accounts, provider }) => accounts.length > 0 || provider !== null)
    .map(({ limits, price, ...model }) => ({
      ...model,
      display_name: model.name,
      description: summaryOf(price, limits.prompt ?? undefined),
      premium: price.premium,
      premium_units: price.units,
      tokens: price.tokens,
      model_picker_enabled: model.picked,
      upstream_endpoints: model.endpoints,
      max_context_window_tokens: limits.context,
      max_prompt_tokens: limits.prompt,
      max_output_tokens: limits.output,
      capabilities: model.supports,
    }));
}

/** @throws UsageError with the nearest names. */
export function pick(named: string, offered: readonly ClientModel[]): ClientModel {
  try {
    return findModel(named, offered);
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    throw new UsageError(thrown.message.replace("GET /v1/models lists", "`dragoman models` lists"));
  }
}
