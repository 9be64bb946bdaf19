/** The models for a set-up, as the running server lists them to its clients. */
import { z } from "zod";
import { type Choice, type ClientModel, chooseModels, isPlain } from "../../clients/models";
import { ProxyError } from "../../errors";
import { findModel } from "../../upstream/model-name";
import { clientModelSource, clientModels } from "../../upstream/model-view";
import { ask, type RunningServer, readAs } from "../running-server";
import { UsageError } from "../usage-error";

export interface Offer {
  /** All models that can be called, including those that GitHub's own picker hides. */
  offered: readonly ClientModel[];
  choice: Choice;
}

/** @throws ProxyError if no model can serve an agent */
export async function modelsOf(server: RunningServer): Promise<Offer> {
  const { data } = readAs(
    z.object({ data: z.array(clientModelSource()) }),
    await ask(server, { path: "/v1/models" }),
    server,
  );
  const offered = clientModels(data).filter(isPlain);
  const choice = chooseModels(offered);
  if (choice) return { offered, choice };
  throw new ProxyError("upstream", `The server at ${server.url} offers no model that an agent can use.`);
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
