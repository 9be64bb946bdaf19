/** Who may ask what: the callers, each with what it gets at each kind of path. */
import { blocksIn, unfolded } from "../support/blocks";
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

export interface Group {
  who: string;
  at: keyof typeof servers;
  /** What it gets; `open` paths are served, whoever asks. */
  gets: Readonly<Record<Exclude<Kind, "open">, Outcome>>;
  /** What each of them sends. `PORT` is the server's. */
  sends: readonly Readonly<Record<string, string>>[];
  /** The origin that may read the answers of model paths. */
  origin?: string;
  /** A wrong admin token is counted, so only one path of each kind is asked. */
  isCounted?: boolean;
}

/** The blocks of `fixtures/access/callers.txt`: which server (`:`), what it gets (`=`), and what each of them sends (`>`). */
export const groups: readonly Group[] = blocksIn("access/callers.txt").map((block) => {
  const [who, ...lines] = block.split("\n").map(unfolded);
  const after = (mark: string) => lines.flatMap((line) => (line.startsWith(`${mark} `) ? [line.slice(2)] : []));
  const outcomes = after("=")[0]!
    .split(", ")
    .map((each) => each.split(" ") as [Kind, string]);
  const gets = Object.fromEntries(outcomes.map(([kind, word]) => [kind, Number(word) || word]));
  return { who, ...JSON.parse(after(":")[0]!), gets, sends: after(">").map((headers) => JSON.parse(headers)) };
});

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
