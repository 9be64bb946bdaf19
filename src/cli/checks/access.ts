/** Who has access, and what to set before a reverse proxy or tunnel is put in front. */
import { z } from "zod";
import { clientKeysOf } from "../../keys/client-keys";
import { lookAt, recordedIn } from "../running-server";
import { about, type CheckContext, type Finding } from "./check";

const access = about("access");

const behindProxy =
  "A reverse proxy or tunnel on this machine (nginx, Caddy, cloudflared, ssh -R) makes remote callers look local. Before you use one, set auth.apiKeys and ADMIN_TOKEN, start with --admin-auth=always, and let it forward the Host header.";

export async function checkAccess({ environment, config }: CheckContext): Promise<Finding[]> {
  if (!config) return [];
  const hasKeys = clientKeysOf(config.auth.apiKeys, environment.clientKey).length > 0;
  const [server] = recordedIn(environment);
  const tokenRequiredHere = server !== undefined && (await asksForToken(server.url));
  return [judgeAccess({ hasKeys, hasToken: environment.adminToken !== undefined, tokenRequiredHere })];
}

interface Found {
  hasKeys: boolean;
  hasToken: boolean;
  /** The running server requires the admin token from this machine too. */
  tokenRequiredHere: boolean;
}

function judgeAccess({ hasKeys, hasToken, tokenRequiredHere }: Found): Finding {
  const clients = hasKeys ? "Clients need a key" : "Programs on this machine need no key";
  if (tokenRequiredHere && !hasKeys)
    return access.warn(
      `${clients}, but the admin API requires its token on this machine too: anyone who comes through a proxy or tunnel can spend your quota.`,
      'If you use one, add a key to "auth": {"apiKeys": ["…"]} in config.json.',
    );
  if (tokenRequiredHere) return access.ok(`${clients}, and the admin API requires its token on this machine too.`);
  const summary = `${clients}, and the admin API is open to this machine without a token.`;
  // Both are set when others are meant to reach the instance.
  if (hasKeys && hasToken)
    return access.warn(`${summary} ${behindProxy}`, "If you use one, start with --admin-auth=always.");
  return access.ok(`${summary} ${behindProxy}`);
}

const asksForToken = async (url: string) => (await lookAt(url, "/api/admin/meta", z.unknown()))?.status === 401;
