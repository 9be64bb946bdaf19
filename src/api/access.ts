/** Who may call a model route: callers with a client key; without configured keys, everyone except pages of other origins. */
import type { App } from "../app";
import { ProxyError } from "../errors";
import { includesSecret, sentSecrets } from "../net/credentials";
import { type Caller, refuseStrangers } from "../net/guard";

/** @throws ProxyError `authentication`, `permission`. */
export function requireClientKey(app: App, request: Request, caller: Caller): void {
  if (app.clientKeys.length > 0) requireKey(app, request);
  else refuseStrangers(caller, new Set(app.config.current.allowedOrigins));
}

/**
 * The upstream token is given to callers with a client key. Without configured keys it is given to this machine only, and
 * with --admin-auth=always to no one. @throws ProxyError `authentication`, `permission`.
 */
export function requireTokenAccess(app: App, request: Request, caller: Caller): void {
  if (caller.foreign)
    throw new ProxyError("permission", "A web page may not read the token.", { code: "origin_not_allowed" });
  if (app.clientKeys.length > 0) requireKey(app, request);
  else if (app.adminAuth === "always")
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

/** One header with a valid key is enough, even if the other is wrong: some clients send both. */
function requireKey(app: App, request: Request): void {
  const sent = sentSecrets(request.headers, "x-api-key");
  if (includesSecret(sent, app.clientKeys)) return;
  throw new ProxyError(
    "authentication",
    sent.length === 0
      ? "A client key is needed: send it as `x-api-key: <key>` or `Authorization: Bearer <key>`."
      : "The client key is not one of the configured keys.",
    { code: "invalid_api_key", headers: { "www-authenticate": "Bearer" } },
  );
}
