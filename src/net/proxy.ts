/** Which proxy a call goes through: the variables and rules are those of Bun's `fetch`, which does the going. */
import { BlockList, isIP } from "node:net";

type Variables = Readonly<Record<string, string | undefined>>;

export interface OutboundProxy {
  /** The variable that names it, as it is spelled in the environment: `HTTPS_PROXY`. */
  variable: string;
  /** `http://proxy.corp:8080`, without user name and password. */
  address: string;
  /** `proxy.corp` and 8080. */
  host: string;
  port: number;
  /** A user name or a password is sent to it. */
  signsIn: boolean;
  /** Why nothing can go through it, as the end of a sentence about the variable; the fields above then tell nothing. */
  fault?: string;
}

/** For https and for http addresses: the first that is not empty counts. */
const named = {
  "https:": ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
  "http:": ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
} as const;

const sparing = ["no_proxy", "NO_PROXY"] as const;

/** The proxy that a call to this address takes; undefined when it goes there by itself, as it always does within this machine. */
export function proxyFor(address: string, env: Variables = process.env): OutboundProxy | undefined {
  const found = findProxy(address, env);
  return found?.ignored ? undefined : found?.proxy;
}

/** A proxy that is named for this address, in a variable for everything, but is none for HTTP: the call goes there by itself. */
export function ignoredProxy(address: string, env: Variables = process.env): OutboundProxy | undefined {
  const found = findProxy(address, env);
  return found?.ignored ? found.proxy : undefined;
}

function findProxy(address: string, env: Variables): { proxy: OutboundProxy; ignored: boolean } | undefined {
  const url = new URL(address);
  const variable = firstSet(named[url.protocol === "https:" ? "https:" : "http:"], env);
  if (variable === undefined || isLoopbackUrl(address) || sparedBy(env).some((entry) => spares(entry, url)))
    return undefined;
  const { proxy, other = false } = readProxy(env[variable]!);
  return { proxy: { variable, ...proxy }, ignored: other && /^all_/i.test(variable) };
}

/** What the environment says is to be called without a proxy, entry by entry. */
export function sparedBy(env: Variables = process.env): string[] {
  const variable = firstSet(sparing, env);
  return variable === undefined ? [] : env[variable]!.split(/[\s,]+/).filter((entry) => entry !== "");
}

/** `localhost`, 127.0.0.0/8 or ::1: the hosts that plain http and no proxy are good for. */
export function isLoopbackUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

function firstSet(names: readonly string[], env: Variables): string | undefined {
  return names.find((name) => !/^(?:|""|'')$/.test(env[name] ?? ""));
}

function readProxy(value: string): { proxy: Omit<OutboundProxy, "variable">; other?: boolean } {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(value) ?? [];
  const url = URL.parse(scheme ? value : `http://${value}`);
  const nothing = { address: "", host: "", port: 0, signsIn: false };
  const faulty = (fault: string, other = false) => ({ proxy: { ...nothing, fault }, other });
  if (value !== value.trim()) return faulty("has a space at one of its ends");
  if (scheme && !/^https?$/i.test(scheme))
    return faulty(`names a ${scheme.toLowerCase()}:// proxy, and only http:// and https:// proxies can be used`, true);
  const signsIn = Boolean(url?.username || url?.password);
  // Of a password with a slash or a hash in it, the address would be the beginning.
  if (!url?.hostname || value.includes("@") !== signsIn || (signsIn && !scheme))
    return faulty(
      "does not read as http://host:port; a sign-in stands before the host as user:password@, with %40 for @ and %2F for /",
    );
  const { protocol, host, hostname, port } = url;
  return {
    proxy: {
      address: `${protocol}//${host}`,
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || (protocol === "https:" ? 443 : 80)),
      signsIn,
    },
  };
}

/** A name with all below it, an address, a range of addresses; `*` is everything. A port narrows it. */
function spares(entry: string, url: URL): boolean {
  if (entry === "*") return true;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const plain = entry.toLowerCase();
  const [, bare = plain, port] = isIP(plain) ? [] : (/^(.+):(\d+)$/.exec(plain) ?? []);
  if (port !== undefined && port !== (url.port || (url.protocol === "https:" ? "443" : "80"))) return false;
  const [network, bits] = bare.split("/");
  if (bits !== undefined) return isWithin(host, network!, Number(bits));
  const name = bare
    .replace(/^\*?\./, "")
    .replace(/\.$/, "")
    .replace(/^\[|\]$/g, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}

function isWithin(host: string, network: string, bits: number): boolean {
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || !(bits >= 0 && bits <= (family === 4 ? 32 : 128))) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, family === 4 ? "ipv4" : "ipv6");
  return list.check(host, family === 4 ? "ipv4" : "ipv6");
}
