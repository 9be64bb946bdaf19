/** One question to the model host about an account, such as its models, beside its requests. */

import { type CallResponse, readText } from "../../../lib/net/out/body";
import type { Account } from "../../../people/accounts/account";
import type { CopilotToken } from "../../../people/accounts/copilot-token";
import { type Failure, readFailure } from "./failure";

interface AccountAnswer {
  status: number;
  text: string;
  /** Missing if the question was answered. */
  failure?: Failure;
}

/** How another token is had after a failure. */
const renewals: Partial<Record<Failure["remedy"], "renewToken" | "renewTokenOrHost" | "relearnHost">> = {
  "renew-token": "renewToken",
  "renew-token-or-host": "renewTokenOrHost",
  "relearn-host": "relearnHost",
};

/**
 * The answer to a question; asked once more with a new token if the account's is refused, or at the host that the upstream
 * names. A refusal is read before that: after a suspension nothing is asked again.
 * @throws ProxyError if the account has no token or the host cannot be asked.
 */
export async function askAccount(
  account: Account,
  ask: (token: CopilotToken) => Promise<CallResponse>,
  { maxBytes, now }: { maxBytes: number; now(): number },
): Promise<AccountAnswer> {
  const answer = async (response: CallResponse): Promise<AccountAnswer> => {
    const { status, ok, headers } = response;
    const text = await readText(response, maxBytes);
    return { status, text, failure: ok ? undefined : readFailure(status, headers, text, now()) };
  };
  const token = await account.copilotToken();
  const first = await answer(await ask(token));
  const renewal = first.failure && renewals[first.failure.remedy];
  return renewal ? answer(await ask(await account[renewal](token))) : first;
}
