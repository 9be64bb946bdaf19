/** The headers that reveal a proxy in front of dragoman. They can only lower trust, because a caller may send them too. */
import { bareAddress, isLoopbackAddress } from "../address";

/**
 * Header names in lower case, by who sets them; `*` stands for any ending. Names with underscores instead of dashes are
 * different headers, which no proxy sets.
 */
const forwardingHeaders = {
  /** RFC 7239, RFC 9110 7.6.3, RFC 8586. */
  standards: ["forwarded", "via", "cdn-loop"],
  /** nginx, Apache, Caddy, HAProxy, Traefik, ngrok and most others use some of these. */
  custom: [
    "x-forwarded",
    "x-forwarded-*",
    "forwarded-*",
    "x-original-forwarded-*",
    "x-original-host",
    "x-real-ip",
    "x-real-host",
    "x-client-ip",
    "client-ip",
    "x-remote-ip",
    "x-remote-addr",
    "x-originating-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "x-scheme",
    "front-end-https",
  ],
  /** Cloudflare and cloudflared, Akamai, Fastly, Fly.io, Imperva, Sucuri, Varnish, DigitalOcean, Netlify, Vercel. */
  edges: [
    "cf-*",
    "true-client-ip",
    "akamai-*",
    "x-akamai-*",
    "fastly-*",
    "fly-*",
    "incap-*",
    "x-sucuri-*",
    "x-varnish",
    "surrogate-capability",
    "do-connecting-ip",
    "x-nf-*",
    "x-vercel-*",
  ],
  /** Google, Azure and Amazon; Envoy and meshes on it; IIS; WebLogic; Tailscale. */
  platforms: [
    "x-appengine-*",
    "x-azure-*",
    "x-amzn-trace-id",
    "x-amz-cf-id",
    "x-envoy-*",
    "x-arr-*",
    "x-iisnode-*",
    "proxy-client-ip",
    "wl-proxy-*",
    "tailscale-*",
  ],
};

const forwarding = new RegExp(
  `^(?:${Object.values(forwardingHeaders)
    .flat()
    .map((name) => name.replace("*", ".*"))
    .join("|")})$`,
);

/** Headers that name the client's address, of those that proxies in front of a program use most. */
const clientHeaders = ["x-forwarded-for", "x-real-ip", "cf-connecting-ip", "true-client-ip", "x-client-ip"];

/** Whether one of them, or `Forwarded` (RFC 7239), names another address than a loopback one. */
export function namesOther(headers: Headers): boolean {
  for (const name of clientHeaders) if (headers.get(name)?.split(",").some(isOther)) return true;
  const forwarded = headers.get("forwarded")?.match(/\bfor=[^;,]*/gi);
  return forwarded?.some((each) => isOther(each.slice("for=".length).replaceAll('"', ""))) === true;
}

function isOther(written: string): boolean {
  const address = bareAddress(written.trim());
  return address !== "" && !isLoopbackAddress(address);
}

/** The first header that reveals a proxy, in lower case; undefined when there is none. */
export function forwardedBy(headers: Headers): string | undefined {
  for (const name of headers.keys()) if (forwarding.test(name)) return name;
  return undefined;
}
