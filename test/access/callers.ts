/** Who may ask what: the callers, each with what it gets at each kind of path. The rows say in words what they hold. */
import type { Kind } from "./paths";

export const key = "k-alpha-0123456789";
export const otherKey = "k-beta-0123456789";
export const token = "t-admin-0123456789";
export const metricsToken = "m-metrics-0123456789";
const oldKey = "k-old-0123456789";

const prov = { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: "pk-prov-0123456789" };

/** The servers that are asked. */
export const servers = {
  /** Started without keys and tokens. It may be called `proxy.example`. */
  open: { config: { providers: { prov }, allowedHosts: ["proxy.example"] } },
  /** With client keys in its config, an admin token and one for the metrics. Its environment names another key, which the config's replace. */
  keyed: {
    config: { auth: { apiKeys: [key, otherKey] }, providers: { prov } },
    env: { ADMIN_TOKEN: token, DRAGOMAN_METRICS_TOKEN: metricsToken, PROXY_API_KEY: oldKey },
  },
  /** With a client key from its environment alone. */
  fromEnvironment: { config: { providers: { prov } }, env: { PROXY_API_KEY: oldKey } },
  /** Reachable from other machines, without a key. */
  exposed: { config: { providers: { prov } }, exposed: true },
  /** A page at one origin may use its models. */
  listed: { config: { providers: { prov }, allowedOrigins: ["http://localhost:3000"] } },
  /** Listens on a name of this machine. */
  named: { config: { providers: { prov } }, binding: { address: "127.0.0.1", name: "vm" } },
  /** With admin tokens that are none. */
  blank: { config: { providers: { prov } }, env: { ADMIN_TOKEN: "   " } },
  empty: { config: { providers: { prov } }, env: { ADMIN_TOKEN: "" } },
  /** Does not trust this machine either. */
  always: { config: { providers: { prov } }, adminAuth: "always", env: { ADMIN_TOKEN: token } },
} as const;

/** Served, or refused with this status; `bare` is a page without data, which asks whether the reader meant to come. */
export type Outcome = "served" | 401 | 403 | "bare";

type Headers = Readonly<Record<string, string>>;

export interface Group {
  who: string;
  at: keyof typeof servers;
  /** What it gets; `open` paths are served, whoever asks. */
  gets: Readonly<Record<Exclude<Kind, "open">, Outcome>>;
  /** What each of them sends. `PORT` is the server's. */
  sends: readonly Headers[];
  /** The origin that may read the answers of model paths. */
  origin?: string;
  /** A wrong admin token is counted, so only one path of each kind is asked. */
  isCounted?: boolean;
}

const all = (outcome: Outcome) => ({ model: outcome, token: outcome, metrics: outcome, admin: outcome, page: outcome });

const foreignPages: Headers[] = [
  { origin: "https://evil.example" },
  { origin: "null" },
  { "sec-fetch-site": "cross-site" },
  { "sec-fetch-site": "same-site" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
  // A link on another site.
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
  { origin: "http://localhost.evil.example" },
  { origin: "http://localhost:PORT.evil.example" },
  { origin: "https://localhost:PORT", host: "localhost:PORT" },
  { origin: "http://localhost:1PORT", host: "localhost:PORT" },
  { origin: "http://evil.example?localhost" },
  { origin: "http://localhost@evil.example" },
  { origin: "http://localhost:PORT, http://evil.example", host: "localhost:PORT" },
];

/** Each reveals a proxy. */
const forwardedBy =
  `forwarded via cdn-loop x-forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-forwarded-server
  x-forwarded-client-cert x-original-forwarded-for x-real-ip x-client-ip client-ip x-cluster-client-ip x-originating-ip x-remote-ip
  cf-connecting-ip cf-connecting-ipv6 cf-ray cf-visitor true-client-ip akamai-origin-hop fastly-client-ip fly-client-ip
  fly-forwarded-proto do-connecting-ip x-nf-client-connection-ip x-vercel-forwarded-for x-varnish x-envoy-external-address
  x-azure-clientip x-azure-fdid x-appengine-user-ip x-amzn-trace-id x-arr-ssl proxy-client-ip wl-proxy-client-ip
  tailscale-user-login`.split(/\s+/);

/** None of them is a name of this machine, however a resolver may read it. */
const strangeNames =
  `evil.example evil.example:PORT localhost.evil.example foo.localhost 127.0.0.1.nip.io 2130706433 0x7f.1 127.1
  0.0.0.0 0.0.0.0:PORT`.split(/\s+/);
const strangers: Headers[] = [
  ...strangeNames.map((host) => ({ host })),
  // A page under a name that was made to lead here is its own origin.
  { origin: "http://evil.example:PORT", host: "evil.example:PORT" },
];

const away = { "x-forwarded-for": "192.0.2.9" };

export const groups: readonly Group[] = [
  {
    who: "a program on this machine, where no key is configured",
    at: "open",
    gets: all("served"),
    sends: [
      {},
      ...["127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "[::1]"].map((name) => ({ host: `${name}:PORT` })),
      { host: "127.0.0.2" },
    ],
  },
  {
    who: "a client with headers that clients and SDKs send, or that only look like a proxy's",
    at: "open",
    gets: all("served"),
    sends: [
      {
        "anthropic-version": "2023-06-01",
        "x-api-key": "k",
        "x-app": "cli",
        "x-stainless-lang": "js",
        "x-client-request-id": "1",
        "x-claude-code-session-id": "1",
        "x-session-affinity": "1",
        "x-requested-with": "fetch",
        "x-initiator": "user",
        "x-github-api-version": "2025-05-01",
        "openai-organization": "o",
        traceparent: "00-0-0-01",
        session_id: "1",
      },
      { x_forwarded_for: "127.0.0.1" },
      { "x-original-url": "/" },
      { "x-rewrite-url": "/" },
      { "x-http-method-override": "POST" },
    ],
  },
  {
    who: "a page of our own, whichever of our names it was opened under",
    at: "open",
    gets: all("served"),
    sends: [
      { origin: "http://127.0.0.1:PORT", host: "localhost:PORT" },
      { origin: "http://localhost:PORT", host: "127.0.0.1:PORT" },
      { "sec-fetch-site": "same-origin" },
      { "sec-fetch-site": "none" },
    ],
  },
  {
    who: "a web page of another origin",
    at: "open",
    gets: { ...all(403), page: "bare" },
    sends: foreignPages,
  },
  {
    who: "a web page of another origin, where keys and an admin token are configured",
    at: "keyed",
    gets: { model: 401, token: 403, metrics: 401, admin: 403, page: "bare" },
    sends: foreignPages,
  },
  {
    who: "a web page with a client key",
    at: "keyed",
    gets: { model: "served", token: 403, metrics: 401, admin: 403, page: "bare" },
    sends: [{ origin: "https://evil.example", "x-api-key": key }],
  },
  {
    who: "a caller under a name that is not this machine's",
    at: "open",
    gets: all(403),
    sends: strangers,
  },
  {
    who: "a caller under a name that is not this machine's, where keys and an admin token are configured",
    at: "keyed",
    gets: all(401),
    sends: [...strangers, { host: "192.168.1.7" }],
  },
  {
    who: "the same with the admin token",
    at: "keyed",
    gets: { model: 401, token: 401, metrics: "served", admin: "served", page: "served" },
    sends: [
      ...[...strangers, { host: "192.168.1.7" }].map((headers) => ({ ...headers, "x-admin-token": token })),
      { ...away, authorization: `Bearer ${token}` },
    ],
  },
  {
    who: "a caller under an address of this machine, or a name that is allowed",
    at: "open",
    gets: { ...all(403), model: "served" },
    sends: [
      { host: "192.168.1.7" },
      { host: "192.168.1.7:PORT" },
      { host: "[fe80::1]" },
      { host: "proxy.example" },
      { host: "Proxy.Example:PORT", origin: "https://proxy.example:PORT" },
    ],
  },
  {
    who: "a caller through a proxy, by the header that reveals it",
    at: "open",
    gets: { ...all(403), model: "served" },
    sends: forwardedBy.map((name) => ({ [name]: "127.0.0.1" })),
  },
  {
    who: "a caller through a proxy, where an admin token is set",
    at: "keyed",
    gets: all(401),
    sends: [away],
  },
  ...(["blank", "empty"] as const).map((at) => ({
    who: `a caller through a proxy, where the admin token is ${at}`,
    at,
    gets: { ...all(403), model: 401 as const },
    sends: [
      away,
      { ...away, "x-admin-token": "" },
      { ...away, "x-admin-token": "   " },
      { ...away, authorization: "Bearer " },
    ],
  })),
  {
    who: "a caller through a proxy with a client key",
    at: "keyed",
    gets: { model: "served", token: "served", metrics: 401, admin: 401, page: 401 },
    sends: [
      { ...away, "x-api-key": key },
      { ...away, authorization: `Bearer ${key}` },
    ],
    isCounted: true,
  },
  {
    who: "a caller through a proxy with a client key as admin token",
    at: "keyed",
    gets: all(401),
    sends: [{ ...away, "x-admin-token": key }],
    isCounted: true,
  },
  {
    who: "a caller through a proxy with a secret where none is looked for",
    at: "keyed",
    gets: all(401),
    sends: [
      { ...away, cookie: `x-admin-token=${token}; token=${token}; x-api-key=${key}` },
      { ...away, cookie: `dragoman_admin=${token}` },
      { ...away, cookie: `dragoman_admin_PORT=${"A".repeat(43)}` },
    ],
  },
  {
    who: "a caller through a proxy with the token for the metrics",
    at: "keyed",
    gets: { ...all(401), metrics: "served" },
    sends: [
      { ...away, authorization: `Bearer ${metricsToken}` },
      { ...away, "x-admin-token": metricsToken },
    ],
    isCounted: true,
  },
  {
    who: "a program on this machine without a right client key",
    at: "keyed",
    gets: { model: 401, token: 401, metrics: "served", admin: "served", page: "served" },
    sends: [
      {},
      // As long as a right one; cut by one; one more; in upper case; the environment's, which does not count here.
      { "x-api-key": "k-alpha-0123456780" },
      { "x-api-key": key.slice(0, -1) },
      { "x-api-key": `${key}x` },
      { authorization: `Bearer ${key}x` },
      { "x-api-key": key.toUpperCase() },
      { "x-api-key": oldKey },
      { authorization: "Bearer" },
      { authorization: `Basic ${btoa(`:${key}`)}` },
      { authorization: `Token ${key}` },
      { cookie: `x-api-key=${key}; authorization=Bearer ${key}` },
      { "x-api-key": "" },
      { "x-api-key": "   " },
      { "x-api-key": "k".repeat(15_000) },
      // What two headers of one name become.
      { "x-api-key": `${key}, wrong` },
      { "x-api-key": `wrong, ${key}` },
      // The admin token is no client key.
      { "x-api-key": token },
      { authorization: `Bearer ${token}` },
      { "x-admin-token": token },
    ],
  },
  {
    who: "a program on this machine with a right client key",
    at: "keyed",
    gets: all("served"),
    sends: [
      { "x-api-key": key },
      { "x-api-key": otherKey },
      { "x-goog-api-key": key },
      { authorization: `bearer ${key}` },
      { authorization: `Bearer  ${key}` },
      { "x-api-key": "wrong", authorization: `Bearer ${key}` },
      { "x-api-key": key, authorization: "Bearer wrong" },
    ],
  },
  {
    who: "a program on this machine, where the key is in the environment alone, without it",
    at: "fromEnvironment",
    gets: { ...all("served"), model: 401, token: 401 },
    sends: [{}, { "x-api-key": key }],
  },
  {
    who: "the same with the key",
    at: "fromEnvironment",
    gets: all("served"),
    sends: [{ "x-api-key": oldKey }],
  },
  {
    who: "anybody, where other machines reach the server and no key is left",
    at: "exposed",
    gets: { ...all("served"), model: 401, token: 401 },
    sends: [{}, { "x-api-key": key }],
  },
  {
    who: "a page whose origin is allowed",
    at: "listed",
    gets: { ...all(403), model: "served", page: "bare" },
    sends: [{ origin: "http://localhost:3000" }],
    origin: "http://localhost:3000",
  },
  {
    who: "a page whose origin is nearly an allowed one",
    at: "listed",
    gets: { ...all(403), page: "bare" },
    sends: [{ origin: "http://localhost:30001" }, { origin: "http://LOCALHOST:3000" }],
  },
  {
    who: "a caller under the name that the server listens on",
    at: "named",
    gets: all("served"),
    sends: [{ host: "vm" }, { host: "vm:PORT" }, { host: "VM" }],
  },
  {
    who: "a caller under a name that contains the name that the server listens on",
    at: "named",
    gets: all(403),
    sends: [{ host: "vm.example" }],
  },
  {
    who: "a program on this machine, where the admin token is always asked for",
    at: "always",
    gets: { model: "served", token: 403, metrics: 401, admin: 401, page: 401 },
    // However many wrong ones: this machine is never locked out.
    sends: [{}, { "x-admin-token": "wrong" }],
  },
  {
    who: "the same with the token",
    at: "always",
    gets: { ...all("served"), token: 403 },
    sends: [{ "x-admin-token": token }, { authorization: `Bearer ${token}` }],
  },
];

/** Header lines whose Host could make the router see another path than the guard. */
export const misleading: Readonly<Record<string, string>> = {
  "no Host, as HTTP/1.0 allows": "",
  "a Host with a space": "Host: a b\r\n",
  "a Host with a user": "Host: evil@localhost\r\n",
  "a Host with a fragment": "Host: localhost#x\r\n",
  "a Host with a path": "Host: localhost/x\r\n",
  "an empty Host": "Host:\r\n",
  "two names in one Host": "Host: a, b\r\n",
  "a good Host and another one": "Host: localhost\r\nHost: evil.example\r\n",
  "another Host and a good one": "Host: evil.example\r\nHost: localhost\r\n",
  "a Host that ends in a dot": "Host: localhost.\r\n",
  "a Host that begins with a dash": "Host: -x\r\n",
  "a Host with a colon and no port": "Host: localhost:\r\n",
  "a Host with half a bracket": "Host: [::1\r\n",
  "a Host with a port that there is not": "Host: localhost:99999\r\n",
  "a Host with an address that there is not": "Host: [::1::]\r\n",
  "a Host with a port of six digits": "Host: localhost:123456\r\n",
  "a Host with an empty part": "Host: a..b\r\n",
  "a Host with a part that begins with a dash": "Host: a.-b\r\n",
  "a Host of 254 letters": `Host: ${"a".repeat(254)}\r\n`,
};
