/** The HTTP server: the Elysia app, and the sockets that it listens on. */
import { Elysia } from "elysia";
import { codeOf } from "./lib/errors";
import { lazy } from "./lib/lazy";
import { isLoopbackAddress } from "./lib/net/address";
import type { AnswerRequest, ClientConnection, GuardLists } from "./lib/net/in/caller";
import type { SocketHandlers } from "./lib/net/in/client-sockets";
import { pathOfUrl } from "./lib/net/in/params";
import { bodyLimit } from "./lib/net/in/request-body";
import type { Server } from "./parts/app";
import { ofProject } from "./proxy/relay/hints";
import { clients, otherSpellings, served } from "./routes/clients";
import { shuttingDown } from "./web/access";
import { isAdmin, isAdminApi } from "./web/admin-path";
import { appOptions, beginVisit, type Visit } from "./web/context";
import { errorResponse, errors } from "./web/errors";
import { allowOrigin, guard, guardLists } from "./web/guard";

/** Where to listen. */
export interface ListenAddress {
  /** An address of this machine; `0.0.0.0` and `::` are all of them. An IPv6 one is written without brackets. */
  address: string;
  /** The name in lower case, if the address was given by name. */
  name?: string;
}

export interface Listening {
  /** The address for people and clients, which answers from this machine: `http://127.0.0.1:4141`. */
  url: string;
  /** Other machines can reach it. */
  exposed: boolean;
  port: number;
  /** Why only one of the two loopback addresses answers; undefined if both do. */
  warning?: string;
  /**
   * Accepts no new requests and settles when the requests in progress have ended.
   * @param noticeMs Answers health checks until then, instead of closing the port at once; and for so many milliseconds, which a
   * load balancer may need to notice it, other requests too.
   */
  drain(noticeMs?: number): Promise<void>;
  /**
   * Ends the requests that are still in progress with an error, and settles when each has its row.
   * @param ms Within which they may tell their clients. The rows of those that take longer do not wait for that.
   */
  cut(ms: number): Promise<void>;
  /** Closes the connections that are still open. */
  close(): void;
}

/**
 * Listens on 127.0.0.1 and ::1 together, or on the one given address.
 * @param port 0 picks a free one.
 * @throws Error with the code EADDRINUSE or EADDRNOTAVAIL.
 */
export function listen(app: Server, port: number, binding: ListenAddress = { address: "127.0.0.1" }): Listening {
  const { address } = binding;
  const exposed = !isLoopbackAddress(address);
  const host = reachableHost(binding);
  const fetch = handler(app, exposed, everyAddress.has(address) ? address : host);
  const open = (name: string, at: number) =>
    Bun.serve<SocketHandlers>({
      hostname: name,
      port: at,
      fetch,
      websocket: { ...socketEvents, ...socketLimits },
      development: false,
      // Outside development, Bun would let two processes share a port, and each would get some of the requests.
      reusePort: false,
      // Larger than our own limit, so that a client gets our error with its message.
      maxRequestBodySize: 1024 * 1024 * 1024,
    });
  const servers = [open(address, port)];
  const bound = servers[0]!.port!;
  let warning: string | undefined;
  if (address === "127.0.0.1")
    try {
      // Otherwise another program could take ::1 at this port, and clients that use `localhost` would reach it.
      servers.push(open("::1", bound));
    } catch (thrown) {
      if (codeOf(thrown) === "EADDRINUSE")
        warning = `Port ${bound} of ::1 is taken by another program: use 127.0.0.1, not localhost.`;
    }
  return {
    url: `http://${host}:${bound}`,
    port: bound,
    exposed,
    warning,
    drain: async (noticeMs) => {
      app.drain();
      if (noticeMs) await Bun.sleep(noticeMs);
      app.refuse();
      app.waitingRoom.stop(shuttingDown);
      // The streams of live pages never end by themselves, nor do WebSockets.
      app.live.close();
      app.sockets.drain();
      if (noticeMs !== undefined) await app.inFlight.idle();
      await Promise.all(servers.map((server) => server.stop()));
    },
    async cut(ms) {
      const why = shuttingDown();
      app.inFlight.stopAll(why);
      await Promise.race([app.inFlight.idle(), Bun.sleep(ms)]);
      app.inFlight.cutAllShort(why);
    },
    close: () => servers.forEach((server) => void server.stop(true)),
  };
}

/** Each socket has its own handlers. Elysia's own upgrade knows one listener, and parses messages before a hook can stop it. */
const socketEvents: Bun.WebSocketHandler<SocketHandlers> = {
  open: (socket) => socket.data.open(socket),
  message: (socket, message) => socket.data.message(socket, message),
  drain: (socket) => socket.data.drain(socket),
  close: (socket, code, reason) => socket.data.close(socket, code, reason),
};

/** Units are bytes and seconds. */
const socketLimits = {
  // Larger than the limit of a body, so that a client gets our error with its message.
  maxPayloadLength: 2 * bodyLimit,
  // Never reached: the upstream is not read while a little of it waits. An event is smaller.
  backpressureLimit: 2 * bodyLimit,
  closeOnBackpressureLimit: true,
  // A client that neither reads nor answers a ping is gone.
  idleTimeout: 120,
  sendPings: true,
  // It would save nothing on small events to this machine, and a compressed message can expand to any size.
  perMessageDeflate: false,
} as const;

/** An address that means "every interface" cannot be called; the loopback address of its family can. */
const everyAddress = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

/** The host of an address that answers from this machine, as `URL.hostname` writes it: `[::1]`. */
function reachableHost({ address, name }: ListenAddress): string {
  const host = name ?? everyAddress.get(address) ?? address;
  return new URL(`http://${host.includes(":") ? `[${host}]` : host}`).hostname;
}

/**
 * The Elysia app: every path of the server. Exported for tests that ask its routes.
 * @param lists As for the guard.
 */
export function webOf(app: Server, lists: () => GuardLists) {
  const fail = (thrown: unknown, request: Request) => errorResponse(app, served, thrown, request);
  // Loaded with the first request for them: few starts need them, and the first answer should not wait for them.
  const adminApi = lazy(async () =>
    (await import("./admin/api/plugin")).adminApi(
      app,
      lazy(() => describeApi(app)),
    ),
  );
  const pages = lazy(async () => (await import("./admin/pages/plugin")).adminPages(app, fail));
  const admin = async (request: Request) =>
    isAdminApi(pathOfUrl(request.url)) ? (await adminApi())(request) : (await pages()).fetch(request);
  return new Elysia({ name: "dragoman", ...appOptions })
    .use(errors(app, served))
    .use(guard(app, served, lists, admin))
    .use(clients)
    .use(otherSpellings);
}

/**
 * Handles the requests of a socket. Exported for callers that have a socket of their own.
 * @param exposed Other machines can reach the socket.
 * @param bound The host that the socket is bound to, as `URL.hostname` writes it.
 */
export function handler(app: Server, exposed: boolean, bound?: string) {
  app.exposed = exposed;
  const lists = guardLists(app.config, bound);
  const web = webOf(app, lists);
  const answer = async (sent: Request, connection: ClientConnection): Promise<Response> => {
    const request = ofProject(sent);
    const visit: Visit = { sent, connection };
    beginVisit(request, visit);
    const response = await web.fetch(request);
    // Elysia's hooks see only some of the answers: neither a 404 nor what a hook before routing answers.
    const { caller } = visit;
    if (caller) allowOrigin(response, request, caller, served, lists());
    response.headers.set("x-request-id", caller?.requestId ?? crypto.randomUUID());
    // The next request on this connection could come when it is being closed.
    if (app.draining) response.headers.set("connection", "close");
    connection.answered(response);
    return response;
  };
  return (request: Request, server: Bun.Server<SocketHandlers>): Promise<Response> =>
    answer(request, new HttpConnection(request, server, answer, app));
}

/**
 * The connection of a listener's request. Bun's limit is the socket's, not the request's: what is lifted stays lifted, and
 * connections that nobody uses any more would use up the files of the process.
 */
class HttpConnection implements ClientConnection {
  readonly isSocket = false;
  #peer: string | null | undefined;
  #isLifted = false;
  #isStream = false;

  constructor(
    readonly request: Request,
    readonly server: Bun.Server<SocketHandlers>,
    readonly answer: (message: Request, connection: ClientConnection) => Promise<Response>,
    readonly app: Server,
  ) {}

  get peer(): string | null {
    if (this.#peer === undefined) {
      const { app, request } = this;
      this.#peer = app.trustedProxies ? app.trustedProxies.clientOf(this.#address, request.headers) : this.#address;
    }
    return this.#peer;
  }

  get isFromTrustedProxy(): boolean {
    return this.app.trustedProxies?.trusts(this.#address) === true;
  }

  /** The socket's. */
  get #address(): string | null {
    return this.server.requestIP(this.request)?.address ?? null;
  }

  keepOpen(): void {
    this.#isLifted = true;
    this.server.timeout(this.request, 0);
  }

  streams(): () => void {
    this.#isStream = true;
    return () => this.#limit();
  }

  /** The events of a live page never end by themselves. */
  answered({ headers }: Response): void {
    if (!this.#isLifted || this.#isStream) return;
    const isEvents = headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    if (!(isEvents && isAdmin(pathOfUrl(this.request.url)))) this.#limit();
  }

  /**
   * The limit runs from here on: what is sent later does not count as use (Bun 1.4.5). While the server stops it is left
   * alone: set at a stream's end, it cost now and then the last bytes of the stream, and its connection ends anyway.
   */
  #limit(): void {
    if (!this.app.draining) this.server.timeout(this.request, this.app.limits.connectionIdle / 1_000);
  }

  upgrade(serve: (answer: AnswerRequest) => SocketHandlers): boolean {
    const { peer, isFromTrustedProxy } = this;
    const data = serve((message, fixups) => this.answer(message, { ...overSocket, peer, isFromTrustedProxy, fixups }));
    return this.server.upgrade(this.request, { data });
  }
}

/** The connection of a WebSocket's message. */
const overSocket: Omit<ClientConnection, "peer" | "isFromTrustedProxy"> = {
  isSocket: true,
  keepOpen() {},
  streams: () => () => {},
  answered() {},
  upgrade: () => false,
};

/** The OpenAPI document of all endpoints. Its generator is loaded. */
async function describeApi({ version }: Server): Promise<object> {
  const { openApiDocument } = await import("./web/openapi");
  const { adminGroup } = await import("./admin/api/plugin");
  const { clientGroup } = await import("./routes/documents");
  return openApiDocument(version, { clients: clientGroup(), admin: adminGroup() });
}
