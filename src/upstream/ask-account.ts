/** One question to the model host about an account, such as its models, beside its requests. */
import type { Account, Session } from "../accounts/account";
import type { CallResponse } from "../net/body";

/**
 * The answer to a question; asked once more with a new session if the account's is refused, or at the host that the upstream
 * names.
 * @throws ProxyError if the account has no session or the host cannot be asked.
 */
export async function askAccount(
  account: Account,
  ask: (session: Session) => Promise<CallResponse>,
): Promise<CallResponse> {
  const session = await account.session();
  const response = await ask(session);
  if (response.status === 401) return ask(await account.refresh(session));
  if (response.status === 403) return ask(await account.renew(session));
  if (response.status === 421) return ask(await account.relearnHost(session));
  return response;
}
