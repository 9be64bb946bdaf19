/** A person of the server, as their requests have it: what everybody's requests share, and nine things of their own. */
import type { ProxyError } from "../lib/errors";
import type { Services } from "../proxy/scope";
import type { Routing } from "../proxy/upstream/routing";
import type { Scope } from "./app";

/** What one person has, and nobody else. */
type Own = Pick<
  Scope,
  | "owner"
  | "membership"
  | "ownAccounts"
  | "config"
  | "history"
  | "running"
  | "unsupportedParams"
  | "lessons"
  | "anthropicCounter"
>;

/**
 * @param services An allow list: what is named neither there nor here, a member's requests do not have.
 * @param isolation As in `RequestScope`.
 */
export function personOf(
  services: Services,
  isolation: () => ProxyError | undefined,
  routing: Routing,
  own: Own,
): Scope {
  const { pool, breaker, catalogue, providers, providerModels } = routing;
  return {
    ...services,
    ...own,
    pool,
    breaker,
    catalogue,
    providers,
    providerModels,
    get accounts() {
      return routing.accounts;
    },
    get isolation() {
      return isolation();
    },
  };
}
