/** Authorizes callers of the admin API and pages: this machine, and anyone with the admin token. Client keys do not count. */
import type { App } from "../../app";
import { ProxyError } from "../../errors";
import { includesSecret, sentSecrets } from "../../net/credentials";
import { networkOf } from "../../net/failed-tries";
import { type Caller, isLoopbackAddress, namesThisMachine } from "../../net/guard";

/** Returns if the caller is authorized, or throws ProxyError `permission`, `authentication`, `rate_limit`. */
export type Guard = (request: Request, caller: Caller) => void;

export function adminGuard(app: App): Guard {
  const { tokenTries: tries } = app;
  return (request, caller) => {
    const { adminToken } = app.environment;
    // Callers on this machine are never locked out. A caller through a local proxy counts as remote.
    const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
    if (network !== undefined) tries.refuse(network);

    const sent = sentSecrets(request.headers, ["x-admin-token"]);
    if (adminToken !== undefined && includesSecret(sent, [adminToken])) return;
    if (caller.local && app.adminAuth === "remote") return;
    if (caller.foreign) throw new ProxyError("permission", "Web pages of other origins cannot use the admin API.");
    if (adminToken === undefined)
      throw new ProxyError(
        "permission",
        `${whyRemote(caller)} To allow access from other machines, set ADMIN_TOKEN where dragoman runs.`,
      );
    if (network !== undefined && sent.length > 0) tries.count(network);
    throw new ProxyError(
      "authentication",
      sent.length === 0
        ? "An admin token is required. Send it as `x-admin-token: <token>` or `Authorization: Bearer <token>`."
        : "The admin token is wrong.",
      { headers: { "www-authenticate": "Bearer" } },
    );
  };
}

/** Why the caller counts as remote: the first sentence of the error message. */
function whyRemote({ peer, host, hostName, forwardedBy }: Caller): string {
  const rule = "The admin API is available on this machine only";
  if (!isLoopbackAddress(peer)) return `${rule}, and this request came from another machine.`;
  if (forwardedBy !== undefined) return `${rule}, and this request came through a proxy (header ${forwardedBy}).`;
  if (!namesThisMachine(host)) return `${rule}, as localhost or 127.0.0.1, and this request was sent to ${hostName}.`;
  return `${rule}.`;
}
