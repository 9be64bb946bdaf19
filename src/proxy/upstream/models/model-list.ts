/** One call to the model list of one account. */

import { modelShape } from "../../../books/changes/known-names";
import type { JsonObject } from "../../../dialects/hub/conversation";
import { ProxyError } from "../../../lib/errors";
import { isObject, notJson, parseJson } from "../../../lib/json";
import { differencesIn } from "../../../lib/json-shape";
import type { CallLimits } from "../../../lib/net/out/clock";
import type { Account } from "../../../people/accounts/account";
import { askAccount } from "../copilot/ask-account";
import type { Copilot } from "../copilot/copilot";
import type { Failure } from "../copilot/failure";
import { type Model, readModel } from "./model";

const maxBytes = 32 * 1024 * 1024;
const maxModels = 5000;

export interface ModelListOptions {
  copilot: Copilot;
  limits: CallLimits;
  now(): number;
  /** Called with the name of each field that is not known. */
  unknownField?(name: string): void;
  /** Called with the items of each list. */
  inspect?(account: string, items: readonly JsonObject[]): void;
}

/** The models of the account, as the upstream lists them. An account that is refused is marked `failed`. @throws ProxyError */
export async function fetchModelList(
  account: Account,
  { copilot, limits, now, unknownField, inspect }: ModelListOptions,
): Promise<Model[]> {
  const { text, failure } = await askAccount(
    account,
    (token) => copilot.call(token, { path: "/models", intent: "model-access", requestId: crypto.randomUUID(), limits }),
    { maxBytes, now },
  );
  if (failure) throw markRefused(account, failure);
  return readModelList(text, unknownField, (items) => inspect?.(account.key, items));
}

/** An account that may not list models may not send requests either: it is blocked, or a person must sign in again. */
function markRefused(account: Account, { account: state, remedy, error }: Failure): ProxyError {
  if (state?.name === "failed") account.setState(state);
  // A fresh token was refused as well.
  else if (remedy === "renew-token" && error.status === 503)
    account.setState({ name: "failed", reason: error.written });
  return error;
}

/** @throws ProxyError `upstream` if the body is not a model list. */
function readModelList(
  body: string,
  unknownField: ModelListOptions["unknownField"],
  inspect: (items: readonly JsonObject[]) => void,
): Model[] {
  const json = parseJson(body);
  if (json === undefined) throw notJson("GitHub Copilot's model list");
  const data = isObject(json) ? json.data : undefined;
  if (!Array.isArray(data)) throw new ProxyError("upstream", "GitHub Copilot's answer holds no model list.");
  inspect(data.slice(0, maxModels).filter(isObject));
  const models = new Map<string, Model>();
  // Some ids are listed twice: the first counts.
  for (const item of data.slice(0, maxModels)) {
    const model = readModel(item);
    if (unknownField && isObject(item))
      for (const { kind, path } of differencesIn(item, modelShape())) if (kind !== "missing") unknownField(path);
    if (model && !models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}
