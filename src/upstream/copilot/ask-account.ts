/** One question to the model host about an account, such as its models, beside its requests. */
import type { Account } from "../../accounts/account";
import type { Session } from "../../accounts/session";
import { type CallResponse, readText } from "../../net/out/body";
import { type Failure, readFailure } from "./failure";

interface AccountAnswer {
  status: number;
  text: string;
  /** Missing if the question was answered. */
  failure?: Failure;
}

/** How another session is had after a failure. */
const renewals: Partial<Record<Failure["remedy"], "refresh" | "renew" | "refreshModelHost">> = {
  "refresh-session": "refresh",
  "renew-session": "renew",
  "relearn-host": "refreshModelHost",
};

/**
 * The answer to a question; asked once more with a new session if the account's is refused, or at the host that the upstream
 * names. A refusal is read before that: after a suspension nothing is asked again.
 * @throws ProxyError if the account has no session or the host cannot be asked.
 */
export async function askAccount(
  account: Account,
  ask: (session: Session) => Promise<CallResponse>,
  { maxBytes, now }: { maxBytes: number; now(): number },
): Promise<AccountAnswer> {
  const answer = async (response: CallResponse): Promise<AccountAnswer> => {
    const { status, ok, headers } = response;
    const text = await readText(response, maxBytes);
    return { status, text, failure: ok ? undefined : readFailure(status, headers, text, now()) };
  };
  const session = await account.session();
  const first = await answer(await ask(session));
  const renewal = first.failure && renewals[first.failure.remedy];
  return renewal ? answer(await ask(await account[renewal](session))) : first;
}
