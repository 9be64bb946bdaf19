/** Who may see and change what is the owner's: this machine, and whoever holds the admin token. Client keys count nothing here. */
import type { App } from "../../app";
import { ProxyError } from "../../errors";
import { includesSecret, sentSecrets } from "../../net/credentials";
import { type Caller, isLoopbackAddress, namesThisMachine } from "../../net/guard";

/** Lets a caller in, or throws ProxyError `permission`, `authentication`, `rate_limit`. */
export type Guard = (request: Request, caller: Caller) => void;

export function adminGuard(app: App): Guard {
  const tries = failedTries(app.now);
  return (request, caller) => {
    const { adminToken } = app.environment;
    // Only this machine's own people are never locked out: whoever comes through a proxy on it is somebody else.
    const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
    if (network !== undefined) tries.refuse(network);

    const sent = sentSecrets(request.headers, "x-admin-token");
    if (adminToken !== undefined && includesSecret(sent, [adminToken])) return;
    if (caller.local && app.adminAuth === "remote") return;
    if (caller.foreign) throw new ProxyError("permission", "A web page of another origin may not use the admin API.");
    if (adminToken === undefined)
      throw new ProxyError(
        "permission",
        `${whyRemote(caller)} To open it to others, set ADMIN_TOKEN where dragoman runs.`,
      );
    if (network !== undefined && sent.length > 0) tries.count(network);
    throw new ProxyError(
      "authentication",
      sent.length === 0
        ? "The admin token is needed: send it as `x-admin-token: <token>` or `Authorization: Bearer <token>`."
        : "The admin token is wrong.",
      { headers: { "www-authenticate": "Bearer" } },
    );
  };
}

/** Why somebody counts as calling from another machine, as the first sentence of a refusal. */
function whyRemote({ peer, host, hostName, forwardedBy }: Caller): string {
  const rule = "The admin API is open to this machine only";
  if (!isLoopbackAddress(peer)) return `${rule}, and this call came from another one.`;
  if (forwardedBy !== undefined)
    return `${rule}, and this call came through a proxy, as its header ${forwardedBy} says.`;
  if (!namesThisMachine(host)) return `${rule} by the name localhost or 127.0.0.1, and it was called ${hostName}.`;
  return `${rule}.`;
}

/** Of one network within a minute. */
const maxTries = 10;
/** Networks remembered at most: the oldest is forgotten for a new one. */
const maxNetworks = 1_024;
const minute = 60_000;

function failedTries(now: () => number) {
  const known = new Map<string, { count: number; until: number }>();
  const recent = (network: string) => {
    const tries = known.get(network);
    if (tries && tries.until > now()) return tries;
    known.delete(network);
    return undefined;
  };
  return {
    refuse(network: string): void {
      const tries = recent(network);
      if (!tries || tries.count < maxTries) return;
      const seconds = Math.max(1, Math.ceil((tries.until - now()) / 1000));
      throw new ProxyError("rate_limit", `Too many wrong admin tokens from your address; wait ${seconds} s.`, {
        headers: { "retry-after": String(seconds) },
      });
    },
    count(network: string): void {
      const tries = recent(network) ?? { count: 0, until: now() + minute };
      if (!known.has(network) && known.size >= maxNetworks) known.delete(known.keys().next().value!);
      known.set(network, { ...tries, count: tries.count + 1 });
    },
  };
}

/** An IPv4 address itself; of an IPv6 one its first half, as whoever has one address there has them all. */
function networkOf(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!bare.includes(":")) return bare;
  const [head = "", tail] = bare.split("::");
  const [first, last] = [head, tail].map((groups) => (groups ? groups.split(":") : []));
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - first!.length - last!.length)).fill("0");
  return [...first!, ...zeros, ...last!].slice(0, 4).join(":");
}
