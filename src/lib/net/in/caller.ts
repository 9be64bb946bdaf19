/**
 * Decides who is calling, from the socket's address, the raw Host header, forwarding headers and what a browser reports
 * about the calling page. Never from `request.url`, which is derived from the Host header.
 */
import { ProxyError } from "../../errors";
import { hostNameSource, isLoopbackName, isOrigin, maxHostName } from "../../host-name";
import { isLoopbackAddress, isLoopbackHost } from "../address";
import { saysTls } from "./browser-url";
import type { SocketHandlers } from "./client-sockets";
import { forwardedBy, namesOther } from "./forwarding";

export interface Caller {
  /** Generated here: a client's `x-request-id` is not trusted. It begins with the time, so that new rows are appended to its index. */
  requestId: string;
  /** As in {@link ClientConnection}. */
  readonly peer: string | null;
  /** The call was made by a web page of another origin. */
  foreign: boolean;
  /** The Origin header, where a browser sent one. */
  origin: string | null;
  host: HostKind;
  /** The name or address that was called, as the Host header has it, in lower case and without its port. */
  hostName: string;
  /** The call comes from this machine, as far as is known: no proxy stands between, or none names another machine. */
  readonly fromHere: boolean;
  /** A header that shows that a proxy forwarded the call; undefined when there is none. */
  readonly forwardedBy: string | undefined;
  /** The call comes from this machine, is addressed to it, and shows neither a proxy nor a foreign page. */
  readonly local: boolean;
}

/** A caller, and the connection that its request came on. */
export interface Visitor extends Caller {
  readonly connection: ClientConnection;
}

/** The connection of a request. */
export interface ClientConnection {
  /** The request came as a message of a WebSocket. */
  readonly isSocket: boolean;
  /** The client's address; null when it is not known. Found when it is first asked for: model routes seldom do. */
  readonly peer: string | null;
  /** A proxy that the owner trusts has passed it on. */
  readonly isFromTrustedProxy: boolean;
  /** Names of the changes that were made to the request before it came here; undefined for none. */
  readonly fixups?: readonly string[];
  /** Lifts the listener's idle limit until the answer is there, because models may think for longer, and a database too. */
  keepOpen(): void;
  /** The answer is a stream: the limit stays lifted until what this returns is called. */
  streams(): () => void;
  /** To be called with the response, before it is sent. */
  answered(response: Response): void;
  /**
   * Makes the connection a WebSocket; false if it cannot become one.
   * @param serve Handles the socket. It is given a function that answers a request as the listener would, after the same checks.
   */
  upgrade(serve: (answer: AnswerRequest) => SocketHandlers): boolean;
}

/** Never throws: a failure is a response too. @param fixups As in {@link ClientConnection}. */
export type AnswerRequest = (request: Request, fixups: readonly string[]) => Promise<Response>;

/**
 * `loopback`: localhost, 127.x, [::1] · `bound`: the name or address that dragoman listens on · `address`: another IP
 * literal, which cannot be rebound · `named`: this machine's own or an allowed name.
 */
type HostKind = "loopback" | "bound" | "address" | "named" | "other";

export interface GuardLists {
  /** Lower-case names besides the loopback ones. */
  hosts: ReadonlySet<string>;
  /** The name or address that dragoman listens on, as `URL.hostname` writes it; undefined when it listens on all. */
  bound?: string;
  /** Exact origins of pages that may call the model routes. */
  origins: ReadonlySet<string>;
}

/**
 * The caller of a request. Must run before routing and before anything is awaited.
 * @param connection Whose peer is null (gone already, or no socket), counts as remote.
 * @throws ProxyError 400 for a Host that could mislead routing.
 */
export function inspect(request: Request, lists: GuardLists, connection: ClientConnection): Visitor {
  const hostHeader = request.headers.get("host");
  const host = judgeHost(hostHeader, lists);
  // A malformed Host makes `request.url` a bare path, and a router would then use another path than the one that was checked.
  if (host === undefined || !request.url.startsWith("http"))
    throw new ProxyError("invalid_request", "The Host header is missing or malformed.", {
      // Nothing more is read from such a connection.
      headers: { connection: "close" },
    });

  const origin = request.headers.get("origin");
  const foreign =
    origin === null ? fetchedFromElsewhere(request) : !isOwnOrigin(origin, hostHeader!, request, connection);
  return new InspectedCaller(request.headers, foreign, origin, host.kind, host.name, connection);
}

interface JudgedHost {
  header: string;
  lists: GuardLists;
  name: string;
  kind: HostKind;
}

/** Most requests have the Host of the one before. */
let lastJudged: JudgedHost | undefined;

/** Undefined if it is missing or malformed. */
function judgeHost(header: string | null, lists: GuardLists): JudgedHost | undefined {
  if (header === null) return undefined;
  if (lastJudged?.header === header && lastJudged.lists === lists) return lastJudged;
  const name = hostPattern.exec(header)?.[1]?.toLowerCase();
  if (name === undefined || name.length > maxHostName) return undefined;
  // A port or an address that there is not: nothing later could read the request's address.
  if (!URL.canParse(`http://${header}`)) return undefined;
  lastJudged = { header, lists, name, kind: hostKind(name, lists) };
  return lastJudged;
}

class InspectedCaller implements Visitor {
  readonly requestId = Bun.randomUUIDv7();
  readonly #headers: Headers;

  constructor(
    headers: Headers,
    readonly foreign: boolean,
    readonly origin: string | null,
    readonly host: HostKind,
    readonly hostName: string,
    readonly connection: ClientConnection,
  ) {
    this.#headers = headers;
  }

  get peer(): string | null {
    return this.connection.peer;
  }

  /** Reads every header, so it is found only for those who ask: model routes do not. */
  get forwardedBy(): string | undefined {
    return forwardedBy(this.#headers);
  }

  /** A caller may say that it comes from elsewhere, which only lowers its trust. */
  get fromHere(): boolean {
    return isLoopbackAddress(this.peer) && !namesOther(this.#headers);
  }

  get local(): boolean {
    return (
      namesThisMachine(this.host) && !this.foreign && isLoopbackAddress(this.peer) && this.forwardedBy === undefined
    );
  }
}

/** Checks a call without a client key. @throws ProxyError 403 that names the config line that would allow it. */
export function refuseStrangers(caller: Caller, origins: readonly string[]): void {
  if (caller.foreign && !(caller.origin !== null && origins.includes(caller.origin))) throw foreignPage(caller.origin);
  if (caller.host === "other") throw unknownHost(caller, "configure a client key");
}

/** The error for a call under a name that is not this server's. @param instead What would help too. */
export function unknownHost({ hostName }: Caller, instead: string): ProxyError {
  const line = `"allowedHosts": ["${hostName}"]`;
  return new ProxyError(
    "permission",
    `This address does not answer to the name ${hostName}. To allow it, put that name into config.json, as in ${line}, or ${instead}.`,
    { code: "host_not_allowed" },
  );
}

/** The error for a web page of another origin; it names the config line that would allow it, if there is one. */
export function foreignPage(origin: string | null): ProxyError {
  const code = "origin_not_allowed";
  if (origin === null)
    return new ProxyError("permission", "A web page of another origin may not call this address.", { code });
  const who = `A web page at ${origin.slice(0, 200)} may not call this address.`;
  const help = isOrigin(origin)
    ? `To allow it, put that origin into config.json, as in "allowedOrigins": ["${origin}"].`
    : "Only a page with an origin of its own can be allowed: serve it from an address such as http://localhost:3000.";
  return new ProxyError("permission", `${who} ${help}`, { code });
}

/** Whether the call was addressed to a loopback name, or to the name or address that dragoman listens on. */
export const namesThisMachine = (host: HostKind): boolean => host === "loopback" || host === "bound";

// Matched against the raw header: a URL parser would accept `evil@localhost` and `localhost/x`.
const hostPattern = new RegExp(`^(\\[[0-9a-f:.]+\\]|${hostNameSource})(?::\\d{1,5})?$`, "i");

function hostKind(host: string, { hosts, bound }: GuardLists): HostKind {
  if (isLoopbackName(host)) return "loopback";
  if (host === bound) return "bound";
  if (hosts.has(host)) return "named";
  // 0.0.0.0 reaches this machine from a page of any origin.
  if (host.startsWith("[") || (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(host) && host !== "0.0.0.0")) return "address";
  return "other";
}

function fetchedFromElsewhere(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  return site === "cross-site" || site === "same-site";
}

/** Over TLS this machine's own names are foreign, because nobody speaks it here but a proxy: one that is trusted says so. */
const isOwnOrigin = (origin: string, host: string, { headers }: Request, connection: ClientConnection) =>
  sameOrigin(origin, host) ||
  (origin.toLowerCase() === `https://${host.toLowerCase()}` && saysTls(headers) && connection.isFromTrustedProxy);

/** A value that does not parse, a list of origins and `null` are foreign. */
function sameOrigin(origin: string, host: string): boolean {
  const parsed = /^(https?):\/\/([^/?#@\\\s,]+)$/.exec(origin);
  if (!parsed) return false;
  const [, scheme, originHost = ""] = parsed;
  if (originHost.toLowerCase() === host.toLowerCase()) return scheme === "http" || !isLoopbackHost(host);
  return scheme === "http" && isLoopbackHost(originHost) && isLoopbackHost(host) && port(originHost) === port(host);
}

const port = (host: string) => /:(\d+)$/.exec(host)?.[1] ?? "80";
