/** The model that the first command names, which has to be one that the person's account lists. */

import { chooseModels } from "../../clients/models";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { App } from "../../parts/app";
import { autoId } from "../../proxy/upstream/copilot/auto-model";
import { exampleModels } from "../../proxy/upstream/models/known-models";
import { ownClientModels } from "../../proxy/upstream/models/model-view";

/** Milliseconds that the start waits for the first account's list, which it loads anyway. */
const listTimeoutMs = 1_500;

/** The small model of the first account that is ready; one of the public ones as long as no list is known. Never throws. */
export async function exampleModel({ accounts, catalogue, config }: App): Promise<string> {
  const account = accounts.find(({ state }) => state.name === "ready");
  if (!account) return exampleModels.small;
  const list = catalogue.load(account).catch(() => {}); // the start says so
  await withTimeLimit(list, listTimeoutMs, () => undefined);
  if (catalogue.isAutoOnly(account)) return autoId;
  const models = ownClientModels(catalogue.listOf(account), config.current);
  return chooseModels(models)?.small.id ?? exampleModels.small;
}
