/** Who has access, and what to set before a reverse proxy or tunnel is put in front. */
import type { Environment } from "../../config/environment";
import type { Config } from "../../config/schema";
import { clientKeysOf } from "../../people/keys/client-keys";
import { callServer } from "../call-server";
import { recordedIn } from "../running-server";
import type { PathOf } from "../server-routes";
import { about, type CheckContext, type Finding } from "./check";

const access = about("access");

const behindProxy =
  "A reverse proxy or tunnel on this machine (nginx, Caddy, cloudflared, ssh -R) makes remote callers look local. Before you use one, set auth.apiKeys and ADMIN_TOKEN, start with --admin-auth=always, and let it forward the Host header.";

export async function checkAccess({ environment, config }: CheckContext): Promise<Finding[]> {
  if (!config) return [];
  const [server] = recordedIn(environment);
  const needsKey =
    (server && (await refusesStrangers(server.url, "/usage/line"))) ?? (await storesKeys(environment, config));
  if (needsKey === undefined)
    return [access.ok("Who is served is known when a server runs: the owner's keys are sealed in the database.")];
  const tokenRequiredHere = server !== undefined && (await refusesStrangers(server.url, "/api/admin/meta")) === true;
  return [judgeAccess({ needsKey, hasToken: environment.adminToken !== undefined, tokenRequiredHere })];
}

/** Whether the server asks who sends nothing for a key or token; undefined if it does not answer. */
async function refusesStrangers(url: string, path: PathOf<"get">): Promise<boolean | undefined> {
  const asked = callServer({ url }, { path, timeoutMs: 2_000 });
  const response = await asked.catch(() => undefined); // it may have been killed, and only its file is left
  response?.body.cancel();
  return response && response.status === 401;
}

/** Whether the next server needs a key; undefined if that cannot be known. */
async function storesKeys(environment: Environment, { auth }: Config): Promise<boolean | undefined> {
  if (environment.databaseUrl === undefined) return clientKeysOf(auth.apiKeys, environment.clientKey).length > 0;
  if (environment.clientKey !== undefined) return true;
  const { inspectDatabase } = await import("../../team/inspect");
  const found = await inspectDatabase(environment).catch(() => undefined); // the check of the database says why
  return found && found.members > 0 ? true : undefined;
}

interface Found {
  /** Clients need a key, of the owner's or a member's. */
  needsKey: boolean;
  hasToken: boolean;
  /** The running server requires the admin token from this machine too. */
  tokenRequiredHere: boolean;
}

function judgeAccess({ needsKey, hasToken, tokenRequiredHere }: Found): Finding {
  const clients = needsKey ? "Clients need a key" : "Programs on this machine need no key";
  if (tokenRequiredHere && !needsKey)
    return access.warn(
      `${clients}, but the admin API requires its token on this machine too: anyone who comes through a tunnel, or a proxy that does not name its callers, can spend your quota.`,
      'If you use one, add a key to "auth": {"apiKeys": ["…"]} in config.json.',
    );
  if (tokenRequiredHere) return access.ok(`${clients}, and the admin API requires its token on this machine too.`);
  const summary = `${clients}, and the admin API is open to this machine without a token.`;
  // Both are set when others are meant to reach the instance.
  if (needsKey && hasToken)
    return access.warn(`${summary} ${behindProxy}`, "If you use one, start with --admin-auth=always.");
  return access.ok(`${summary} ${behindProxy}`);
}
