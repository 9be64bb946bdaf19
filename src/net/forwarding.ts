/** By which headers a proxy in front of us gives itself away. They can only lower trust: a caller may write them too. */

/**
 * Header names in lower case, by who sets them; `*` stands for any end. A name with underscores for dashes is another
 * header, which no proxy sets.
 */
const forwardingHeaders = {
  /** RFC 7239, RFC 9110 7.6.3, RFC 8586. */
  standards: ["forwarded", "via", "cdn-loop"],
  /** nginx, Apache, Caddy, HAProxy, Traefik, ngrok and most others, each its own selection. */
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

/** The first header of a proxy in front of us, in lower case; undefined when there is none. */
export function forwardedBy(headers: Headers): string | undefined {
  for (const name of headers.keys()) if (forwarding.test(name)) return name;
  return undefined;
}
