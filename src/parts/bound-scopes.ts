/**
 * Requests that are bound to some accounts: by their key, or by what their client works on. Whatever is done for one (a try with
 * the next account, a choice of Auto, a count of tokens, a search by a model) knows no other account, and no other provider.
 */

import { BoundedMap } from "../lib/bounded-map";
import { entryOf } from "../lib/json";
import type { ClientKey } from "../people/keys/client-keys";
import { projectHeader } from "../proxy/relay/hints";
import type { Services } from "../proxy/scope";
import { openMemberRouting, type RoutingParts } from "../proxy/upstream/routing";
import type { App, Scope, Server } from "./app";
import { personOf } from "./person";

/** Bindings whose scopes are kept: a config has fewer. */
const maxBindings = 200;

/** What a request with this key and these headers may use. A member's requests use the member's own accounts in any case. */
export function scopeOf(server: Server, key: ClientKey | undefined, headers: Headers): Scope {
  const member = key?.member ?? null;
  if (member !== null) return server.forMember(member);
  const ofProject = entryOf(server.config.current.projectAccounts, headers.get(projectHeader) ?? "");
  const ofKey = key?.accounts;
  if (ofKey === undefined && ofProject === undefined) return server.owner;
  return server.boundTo(inBoth(ofKey ?? ofProject!, ofProject ?? ofKey!));
}

/** Both have to allow an account; where none is in both, nothing is sent. */
const inBoth = (one: readonly string[], other: readonly string[]) => one.filter((account) => other.includes(account));

/** Makes the scope of each list of accounts once. */
export function boundScopes(app: App, services: Services, parts: RoutingParts): (accounts: readonly string[]) => Scope {
  const scopes = new BoundedMap<string, Scope>(maxBindings);
  return (accounts) => scopes.renewed(JSON.stringify(accounts), () => boundScope(app, services, parts, accounts));
}

/** The owner's scope, with another routing. */
function boundScope(app: App, services: Services, parts: RoutingParts, bound: readonly string[]): Scope {
  const names = new Set(bound);
  const accounts = () => app.accounts.filter(({ key }) => names.has(key.toLowerCase()));
  const which = bound.length === 0 ? "no account" : bound.map((name) => `\`${name}\``).join(", ");
  const hint = `Requests of this key or project are bound to ${which}: sign in there, or change the binding in the config.`;
  // GitHub may mean the person: whatever account it blocks, nothing more is sent.
  const routing = openMemberRouting(parts, accounts, hint, () => app.accounts);
  const { owner, membership, ownAccounts, config, history, running, unsupportedParams, lessons, anthropicCounter } =
    app;
  const own = {
    owner,
    membership,
    ownAccounts,
    config,
    history,
    running,
    unsupportedParams,
    lessons,
    anthropicCounter,
  };
  return personOf(services, () => app.isolation, routing, own);
}
