/** Which proxy an outgoing call uses. The variables and rules are those of Bun's `fetch`, which makes the call. */
import { familyOf, inRanges, isLoopbackUrl, rangeOf } from "../address";

type Variables = Readonly<Record<string, string | undefined>>;

export interface OutboundProxy {
  /** The variable that names it, as it is spelled in the environment: `HTTPS_PROXY`. */
  variable: string;
  /** `http://proxy.corp:8080`, without user name and password. */
  address: string;
  /** `proxy.corp` and 8080. */
  host: string;
  port: number;
  /** It is sent a user name or a password. */
  signsIn: boolean;
  /** Why it cannot be used, as the end of a sentence about the variable; the fields above are then empty. */
  fault?: string;
}

/** By the scheme of the address; the first variable that is not empty is used. */
const proxyVariables = {
  "https:": ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
  "http:": ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
} as const;

const noProxyVariables = ["no_proxy", "NO_PROXY"] as const;

/** The proxy for a call to this address; undefined when the call is direct, as calls within this machine always are. */
export function proxyFor(address: string, env: Variables = process.env): OutboundProxy | undefined {
  const found = findProxy(address, env);
  return found?.ignored ? undefined : found?.proxy;
}

/** The proxy in `ALL_PROXY` that is ignored because it is not an HTTP proxy; the call is then direct. */
export function ignoredProxy(address: string, env: Variables = process.env): OutboundProxy | undefined {
  const found = findProxy(address, env);
  return found?.ignored ? found.proxy : undefined;
}

function findProxy(address: string, env: Variables): { proxy: OutboundProxy; ignored: boolean } | undefined {
  const url = new URL(address);
  const variable = firstSet(proxyVariables[url.protocol === "https:" ? "https:" : "http:"], env);
  if (variable === undefined || isLoopbackUrl(address) || sparedBy(env).some((entry) => matchesEntry(entry, url)))
    return undefined;
  const { proxy, other = false } = readProxy(env[variable]!);
  return { proxy: { variable, ...proxy }, ignored: other && /^all_/i.test(variable) };
}

/** The proxy variable by which other programs than Bun would call this machine's own 127.0.0.1. */
export function proxyOfLoopback(env: Variables): string | undefined {
  const spared = sparedBy(env).some((entry) => /^(?:\*|127\.0\.0\.1|127\.0\.0\.0\/8)$/.test(entry));
  return spared ? undefined : firstSet(proxyVariables["http:"], env);
}

/** The entries of `NO_PROXY`. */
export function sparedBy(env: Variables = process.env): string[] {
  const variable = firstSet(noProxyVariables, env);
  return variable === undefined ? [] : env[variable]!.split(/[\s,]+/).filter((entry) => entry !== "");
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
  // With a slash or a hash in the password, part of it would be taken for the host.
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

/** An entry is a name (with its subdomains), an address, a range of addresses, or `*`; it may have a port. */
function matchesEntry(entry: string, url: URL): boolean {
  if (entry === "*") return true;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const plain = entry.toLowerCase();
  const [, bare = plain, port] = familyOf(plain) ? [] : (/^(.+):(\d+)$/.exec(plain) ?? []);
  if (port !== undefined && port !== (url.port || (url.protocol === "https:" ? "443" : "80"))) return false;
  if (bare.includes("/")) {
    const range = rangeOf(bare);
    return range !== undefined && range.family === familyOf(host) && inRanges([range])(host);
  }
  const name = bare
    .replace(/^\*?\./, "")
    .replace(/\.$/, "")
    .replace(/^\[|\]$/g, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}
