/** The HTTP server: checks before routing, the routes, request ids, and errors in the dialect of the path. */
import { hostname } from "node:os";
import { encodeAdminError, isAdmin, isAdminApi } from "./admin/admin-path";
import { clientAnswers, closestRow, isForProjects, methodsAt, nearestPath } from "./api/client-answers";
import { clientGroup } from "./api/routes";
import { errorSchemas } from "./api/schemas";
import type { Server } from "./app";
import type { Config } from "./config/schema";
import { codecs } from "./dialects/codecs";
import type { ClientDialect } from "./dialects/hub/conversation";
import { asProxyError, codeOf, ProxyError } from "./errors";
import { lazy } from "./lazy";
import { methodNotAllowed } from "./matcher";
import { isLoopbackAddress } from "./net/address";
import type { SocketHandlers } from "./net/in/client-sockets";
import {
  type AnswerRequest,
  type Caller,
  type ClientConnection,
  foreignPage,
  type GuardLists,
  inspect,
  refuseMethods,
  type Visitor,
} from "./net/in/guard";
import { pathOfUrl } from "./net/in/params";
import { bodyLimit } from "./net/in/request-body";
import { errorForClient } from "./relay/client-error";
import { ofProject } from "./relay/hints";

/** Where to listen. */
export interface Binding {
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
  /** Ends the requests that are still in progress with an error, and settles when each has its row. */
  cut(): Promise<void>;
  /** Closes the connections that are still open. */
  close(): void;
}

/**
 * Listens on 127.0.0.1 and ::1 together, or on the one given address.
 * @param port 0 picks a free one.
 * @throws Error with the code EADDRINUSE or EADDRNOTAVAIL.
 */
export function listen(app: Server, port: number, binding: Binding = { address: "127.0.0.1" }): Listening {
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
    cut() {
      app.inFlight.stopAll(shuttingDown());
      return app.inFlight.idle();
    },
    close: () => servers.forEach((server) => void server.stop(true)),
  };
}

/** Each socket has its own handlers. Elysia's are the same, but loading them would bring all of Elysia into each start. */
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
function reachableHost({ address, name }: Binding): string {
  const host = name ?? everyAddress.get(address) ?? address;
  return new URL(`http://${host.includes(":") ? `[${host}]` : host}`).hostname;
}

/**
 * Handles the requests of a socket. Exported for callers that have a socket of their own.
 * @param exposed Other machines can reach the socket.
 * @param bound The host that the socket is bound to, as `URL.hostname` writes it.
 */
export function handler(app: Server, exposed: boolean, bound?: string) {
  app.exposed = exposed;
  const callers = new WeakMap<Request, Visitor>();
  const currentLists = guardLists(app, bound);
  const callerOf = (request: Request) => callers.get(request)!;
  const fail = (thrown: unknown, request: Request) =>
    errorResponse(app, thrown, request, callers.get(request)?.requestId ?? "");
  const answerClient = clientAnswers(app, callerOf, {
    miss: (request) => fail(nothingAt(request), request),
    fail,
  });
  // Loaded with the first request for them: few starts need them, and the first answer should not wait for them.
  const adminApi = lazy(async () =>
    (await import("./admin/api/routes")).adminAnswers(
      app,
      callerOf,
      lazy(() => describeApi(app)),
      fail,
    ),
  );
  const pages = lazy(async () => (await import("./admin/pages/routes")).pageAnswers(app, callerOf, fail));

  const answer = async (sent: Request, connection: ClientConnection): Promise<Response> => {
    const request = ofProject(sent);
    const lists = currentLists();
    let requestId = "";
    let response: Response;
    try {
      const caller = inspect(request, lists, connection);
      requestId = caller.requestId;
      // The admin API authorizes the caller before it refuses a method.
      const path = pathOfUrl(request.url);
      if (request !== sent && !isForProjects(path)) throw nothingAt(sent);
      // A form or a body is read within the limit; who asks without one may wait for the database.
      if (isAdmin(path) && !bodyMethods.has(request.method)) connection.keepOpen();
      if (!isAdminApi(path)) refuseMethods(request, path, methodsOrUsual);
      if (app.isOurOwn(request.headers)) throw ourselves();
      if (app.refusing && !isAdmin(path) && !closestRow(path)?.access.whileStopping) throw shuttingDown();
      callers.set(request, caller);
      if (request.method === "OPTIONS") response = preflight(request, caller, lists);
      else if (isAdminApi(path)) response = await (await adminApi())(request);
      else if (isAdmin(path)) response = await (await pages())(request);
      else response = await answerClient(request);
      allowOrigin(response, request, caller, lists);
    } catch (thrown) {
      response = errorResponse(app, thrown, request, requestId);
    }
    response.headers.set("x-request-id", requestId || crypto.randomUUID());
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
    readonly app: Pick<Server, "limits" | "draining" | "trustedProxies">,
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

/** The OpenAPI document of all endpoints. Its generator is loaded, and holds the thread for a part of a second. */
async function describeApi({ version }: Server): Promise<object> {
  const { openApiDocument } = await import("./openapi");
  const { adminGroup } = await import("./admin/api/routes");
  return openApiDocument(version, {
    clients: { ...clientGroup, errorAt: (path) => errorSchemas()[dialectAt(path)] },
    admin: adminGroup,
  });
}

/** The response for an error: status, headers, and a body in the shape of the path. */
function errorResponse(app: Server, thrown: unknown, request: Request, requestId: string): Response {
  const error = asProxyError(thrown);
  if (error.kind === "internal") app.logger.error(`${request.method} failed unexpectedly.`, error.details.cause);
  // What quotes an upstream or the client is told as it is. A sentence of our own should have no secret in it.
  const spoken =
    error.message === error.written
      ? new ProxyError(error.kind, app.logger.scrub(error.message, 2048), error.details)
      : error;
  const path = pathOfUrl(request.url);
  if (isAdminApi(path))
    return Response.json(encodeAdminError(spoken), { status: error.status, headers: error.details.headers });
  const dialect = dialectAt(path);
  const shown = errorForClient(spoken, dialect, request.headers.get("user-agent"));
  const { status } = shown;
  const { headers, body } = shown.details;
  if (body !== undefined)
    return new Response(body, { status, headers: { ...headers, "content-type": "application/json" } });
  return Response.json(codecs[dialect].encodeError(shown, requestId), { status, headers });
}

/** The dialect in which errors of a path are written; chat for paths without a dialect. */
const dialectAt = (path: string): ClientDialect => closestRow(path)?.dialect ?? "chat";

function ourselves(): ProxyError {
  return new ProxyError("loop", "This call was sent by dragoman itself: the address of a provider leads back here.", {
    headers: { "x-should-retry": "false" },
  });
}

/** For a request that came after the signal to stop; the client's next try reaches whatever runs then. */
const shuttingDown = () =>
  new ProxyError("no_account", "dragoman is shutting down; send the request again in a moment.", {
    code: "shutting_down",
    headers: { connection: "close", "retry-after": "1" },
  });

function nothingAt(request: Request): ProxyError {
  const methods = methodsAt(pathOfUrl(request.url));
  if (methods) return methodNotAllowed(request.method, methods);
  const path = pathOfUrl(request.url);
  const meant = nearestPath(path);
  const hint = meant === undefined ? "" : ` Did you mean ${meant.slice(0, 200)}?`;
  return new ProxyError("not_found", `No such path: ${path.slice(0, 200)}.${hint} GET / lists the paths.`);
}

const bodyMethods = new Set(["POST", "PUT", "PATCH", "DELETE"]);
const usualMethods = ["GET", "HEAD", "POST"];
const methodsOrUsual = (path: string) => methodsAt(path) ?? usualMethods;

/** Answers OPTIONS, and the preflight of a browser; no handler sees it. */
function preflight(request: Request, caller: Caller, lists: GuardLists): Response {
  const allowed = caller.origin !== null && lists.origins.has(caller.origin) && isForPages(request);
  // `allowedOrigins` opens the paths of models only.
  if (caller.foreign && !allowed) throw foreignPage(isForPages(request) ? caller.origin : null);
  const methods = methodsOrUsual(pathOfUrl(request.url));
  return new Response(null, {
    status: 204,
    headers: allowed
      ? {
          "access-control-allow-methods": methods.join(", "),
          "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "",
          "access-control-max-age": "600",
        }
      : { allow: [...methods, "OPTIONS"].join(", ") },
  });
}

/** Lets a page of an allowed origin read the answer: model routes only, the exact origin, no credentials. */
function allowOrigin(response: Response, request: Request, { origin }: Caller, { origins }: GuardLists): void {
  if (origin === null || !origins.has(origin) || !isForPages(request)) return;
  response.headers.set("access-control-allow-origin", origin);
  response.headers.append("vary", "Origin");
}

const isForPages = (request: Request) => closestRow(pathOfUrl(request.url))?.access.forPages === true;

/** Rebuilt only when the config has changed. */
function guardLists(app: Server, bound?: string): () => GuardLists {
  // `0.0.0.0` does not identify this machine: as a Host header it is one allowed name among others.
  const every = bound !== undefined && everyAddress.has(bound) ? [bound] : [];
  let config: Config | undefined;
  let lists: GuardLists = { hosts: new Set(), origins: new Set() };
  return () => {
    if (config === app.config.current) return lists;
    config = app.config.current;
    lists = {
      hosts: new Set([ownName, ...every, ...config.allowedHosts]),
      bound: every.length > 0 ? undefined : bound,
      origins: new Set(config.allowedOrigins),
    };
    return lists;
  };
}

const ownName = hostname().toLowerCase();
