/** Remembers that an account was refused a model that its list names, and finds the error for the client. */

import { ProxyError, words } from "../../../lib/errors";
import type { Account } from "../../../people/accounts/account";
import { autoOnlyError } from "../copilot/auto-model";
import type { Failure } from "../copilot/failure";
import type { Catalogue } from "./catalogue";

/**
 * @returns The failure; with another error if the account has nothing but Auto, or was refused every model that it was asked
 * for.
 */
export function withDenial({ catalogue }: { catalogue: Catalogue }, account: Account, model: string, failure: Failure) {
  if (!failure.denies) return failure;
  if (failure.denies === "model") catalogue.denials.refusedName(account);
  if (catalogue.isAutoOnly(account)) return { ...failure, error: autoOnlyError(model, failure.error.words) };
  const found = catalogue.listOf(account).find(({ id }) => id === model);
  catalogue.denials.denied(account, model, found ? (found.isAbsent ? "before" : "now") : "never", failure.offered);
  if (failure.denies === "model") catalogue.drop(account, model);
  const models = catalogue.denials.everyDenied(account);
  return models ? { ...failure, error: clientNotAllowed(account, models, failure.error) } : failure;
}

/**
 * Organizations allow or deny each client by itself, and the answer is the same as for a single model (oh-my-pi, 2026-09).
 * The name of another product is never sent unasked.
 */
function clientNotAllowed({ id }: Account, models: string[], { words: said }: ProxyError): ProxyError {
  const sentence = words`GitHub refused ${id} every model that it was asked for (${models.slice(0, 5).join(", ")}), the last one with: ${said} Its organization may not allow this client: ask its admin to allow it. If you may use the account as another client, \`upstreamHeaders\` in config.json can name that client's \`copilot-integration-id\`.`;
  const headers = { "x-should-retry": "false" };
  return new ProxyError("no_account", sentence, { code: "client_not_allowed", headers });
}
