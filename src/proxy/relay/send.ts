/** Sends a request to the upstream of its target: to one provider, or to accounts of GitHub Copilot until one serves it. */
import type { RequestScope } from "../scope";
import { sendWithFailover } from "./failover";
import { sendToProvider } from "./provider-send";
import { isProvided } from "./target";
import type { Dispatch } from "./upstream-call";

/**
 * The result of the first answer that serves the request.
 * @throws ProxyError The last failure, or why nobody could be asked.
 */
export function send<Answer>(parts: RequestScope, dispatch: Dispatch<Answer>): Promise<Answer> {
  const { target } = dispatch;
  return isProvided(target) ? sendToProvider(parts, { ...dispatch, target }) : sendWithFailover(parts, dispatch);
}
