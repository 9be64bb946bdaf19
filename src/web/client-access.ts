/** Who may call a model route: callers with a client key; without configured keys, everyone except pages of other origins. */

import { type Awaitable, whenKnown } from "../lib/awaitable";
import { ProxyError } from "../lib/errors";
import { networkOf } from "../lib/net/address";
import { type Caller, refuseStrangers, unknownHost } from "../lib/net/in/caller";
import { includesSecret, keyHeaders, sentSecrets } from "../lib/net/in/credentials";
import type { Server } from "../parts/app";
import { findClientKey, type KeyedCaller, requireLasting, requireUnexpired } from "../people/keys/client-keys";

/** Sets the caller's key. @throws ProxyError `authentication`, `permission`, `rate_limit`, `unable`. */
export function requireClientKey(app: Server, request: Request, caller: KeyedCaller): Awaitable<void> {
  return whenKnown(keysIn(app, request, caller), (sent) => requireAccess(app, sent, caller));
}

function requireAccess(app: Server, sent: readonly string[], caller: KeyedCaller): Awaitable<void> {
  if (app.requiresKey) return requireKey(app, sent, caller);
  refuseStrangers(caller, app.config.current.allowedOrigins);
  if (app.openTo === "this machine" && !caller.fromHere) throw noKeyForOthers();
}

/**
 * The keys that a request sent, when it is known whose they are: the first member may have been added elsewhere a moment ago.
 * @throws ProxyError `rate_limit`, `unable`
 */
function keysIn(app: Server, { headers }: Request, caller: Caller): Awaitable<string[]> {
  // A key may have been revoked without this server knowing.
  if (app.isolation) throw app.isolation;
  const sent = sentSecrets(headers, keyHeaders);
  if (sent.length === 0 || findClientKey(sent, app.clientKeys) !== undefined) return sent;
  return whenKnown(hearMembers(app, sent, caller), () => sent);
}

/**
 * Finds out of the keys that were sent which members have them. Those of callers on this machine are not counted.
 * @throws ProxyError `unable`; `rate_limit` where too many came from the network that nobody has
 */
export function hearMembers(
  { members, wrongSecrets: { clientKeys: tries } }: Server,
  sent: readonly string[],
  { local, peer }: Caller,
): Awaitable<void> {
  return members?.hear(sent, local ? undefined : { network: networkOf(peer ?? "unknown"), tries });
}

/** Makes the accounts of a member known who has just joined: another server may have saved them a moment ago. @throws ProxyError `unable` */
export function hearAccounts(app: Server, member: string): Awaitable<void> {
  if (app.forMember(member).accounts.length === 0) return app.accountStore.reload?.();
}

/**
 * Tools sign in under a name that this server answers to: they are told addresses under the name that they asked.
 * @throws ProxyError `permission`.
 */
export function requireSignIn(_app: Server, _request: Request, caller: KeyedCaller): void {
  if (caller.foreign) throw new ProxyError("permission", "Pages of other sites cannot sign anybody in.");
  if (caller.host === "other" && !caller.connection.isFromTrustedProxy)
    throw unknownHost(caller, "name the proxy that it stands for with --trust-proxy");
}

/** @throws ProxyError `invalid_request`: addresses are written to logs, by proxies too. */
function refuseKeyInAddress(url: string): void {
  if (!new URL(url).searchParams.has("key")) return;
  throw new ProxyError(
    "invalid_request",
    "A key in the address (its parameter `key`) is not accepted, because addresses end up in logs: send it as the header `x-goog-api-key`.",
    { param: "key", code: "key_in_address" },
  );
}

/** The same for Google's clients, some of which send the key in the address. @throws ProxyError `invalid_request` too. */
export function requireGoogleKey(app: Server, request: Request, caller: KeyedCaller): Awaitable<void> {
  refuseKeyInAddress(request.url);
  return requireClientKey(app, request, caller);
}

/**
 * The Copilot token is given to callers with a client key. Without configured keys it is given to this machine only, and
 * with --admin-auth=always to no one. @throws ProxyError `authentication`, `permission`.
 */
export async function requireTokenAccess(app: Server, request: Request, caller: KeyedCaller): Promise<void> {
  if (caller.foreign)
    throw new ProxyError("permission", "A web page may not read the token.", { code: "origin_not_allowed" });
  const sent = await keysIn(app, request, caller);
  if (!app.requiresKey) return requirePlaceForToken(app, caller);
  await requireKey(app, sent, caller);
  const { key } = caller;
  requireLasting(key);
  if (key && (key.limited || app.budgets.limits(key)))
    throw new ProxyError(
      "permission",
      "A client key that has models or budgets may not read the token, to which they do not apply.",
      { code: "token_not_allowed" },
    );
}

function requirePlaceForToken(app: Server, caller: KeyedCaller): void {
  if (app.adminAuth === "always")
    throw new ProxyError(
      "permission",
      "With --admin-auth=always the token is shown to a caller with a client key only, and no key is configured.",
      { code: "local_only" },
    );
  else if (!caller.local)
    throw new ProxyError("permission", "The token is shown on this machine only, or to a caller with a client key.", {
      code: "local_only",
    });
}

/**
 * The metrics name accounts and keys: this machine reads them, and who has the token for them or the admin token.
 * @throws ProxyError `authentication`, `permission`, `rate_limit`.
 */
export function requireMetricsAccess(
  { adminAuth, environment, wrongSecrets: { metricsTokens: tries } }: Server,
  request: Request,
  caller: KeyedCaller,
): void {
  if (caller.local && adminAuth === "remote") return;
  const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
  if (network !== undefined) tries.refuse(network);
  const { adminToken, metricsToken } = environment;
  const tokens = [adminToken, metricsToken].filter((token) => token !== undefined);
  const sent = sentSecrets(request.headers, ["x-admin-token"]);
  if (includesSecret(sent, tokens)) return;
  if (tokens.length === 0)
    throw new ProxyError(
      "permission",
      "The metrics are read on this machine only. To read them from another one, set DRAGOMAN_METRICS_TOKEN where dragoman runs.",
      { code: "local_only" },
    );
  if (network !== undefined && sent.length > 0) tries.count(network);
  throw new ProxyError(
    "authentication",
    sent.length === 0
      ? "A token is needed to read the metrics: send it as `Authorization: Bearer <token>`."
      : "The token is neither DRAGOMAN_METRICS_TOKEN nor ADMIN_TOKEN.",
    { headers: { "www-authenticate": "Bearer" } },
  );
}

const noKeyForOthers = () =>
  new ProxyError(
    "authentication",
    "This dragoman has no client key, so it serves programs on its own machine only, and this request came through a proxy, or may have. Create a key with `dragoman key add` where dragoman runs, or start it with --allow-open.",
    { code: "no_client_key", headers: { "www-authenticate": "Bearer" } },
  );

/** One header with a valid key is enough, even if the other is wrong: some clients send both. */
function requireKey(app: Server, sent: readonly string[], caller: KeyedCaller): Awaitable<void> {
  caller.key = findClientKey(sent, app.clientKeys) ?? app.members?.findKey(sent);
  if (caller.key) {
    requireUnexpired(caller.key, app.now());
    return caller.key.member === null ? undefined : hearAccounts(app, caller.key.member);
  }
  if (!app.hasKeys)
    throw new ProxyError(
      "authentication",
      "Nobody is served: other machines reach this dragoman, and it has no client key. Create one with `dragoman key add` where it runs, or start it with --allow-open.",
      { code: "no_client_key", headers: { "www-authenticate": "Bearer" } },
    );
  throw new ProxyError(
    "authentication",
    sent.length === 0
      ? "A client key is needed: send it as `x-api-key: <key>`, `x-goog-api-key: <key>` or `Authorization: Bearer <key>`."
      : "The client key is not one of the configured keys.",
    { code: "invalid_api_key", headers: { "www-authenticate": "Bearer" } },
  );
}
