/** Sends a request to the upstream of its target: to one provider, or to accounts of GitHub Copilot until one serves it. */
import type { RequestScope } from "../scope";
import { AccountSeats } from "./account-seats";
import { after, type Step } from "./after";
import { ProviderSeats } from "./provider-seats";
import { isProvided } from "./target";
import type { Dispatch } from "./upstream-call";

/**
 * The result of the first answer that serves the request. A request that may have been processed is never sent again.
 * @throws ProxyError The last failure, or why nobody could be asked.
 */
export async function send<Answer>(parts: RequestScope, dispatch: Dispatch<Answer>): Promise<Answer> {
  const seats = isProvided(dispatch.target) ? new ProviderSeats(parts, dispatch) : new AccountSeats(parts, dispatch);
  for (let step: Step = "next account"; ; ) {
    const tried = await seats.attempt(step);
    if ("answer" in tried) return tried.answer;
    step = after([tried.trouble], seats);
    if (step === "end") throw seats.error;
  }
}
