/** Open WebSockets to the upstream. One serves one request at a time, and then waits for the next of its session. */
import { proxyFor } from "../../net/out/proxy";
import { identityOf } from "./headers";

/** A socket that is open and idle, or in use by one request. */
export interface PooledSocket {
  /** It has served a request before. */
  isUsed: boolean;
  send(text: string): void;
  /** Called with each message, and with undefined when the socket has closed. */
  listener: ((message: string | undefined) => void) | undefined;
  /** Closes it at once. */
  drop(): void;
}

export interface SocketAddress {
  /** `https://…`, or `http://…` on this machine. */
  url: string;
  headers: Record<string, string>;
  /** Requests of one session are served by one socket, as long as it lives; undefined if the session is not known. */
  session: string | undefined;
}

interface SocketPoolLimits {
  /** Milliseconds that a socket waits for a request. */
  idleMs: number;
  /** Milliseconds after which a socket takes no further request: the upstream ends it after 60 minutes. */
  ageMs: number;
  /** Milliseconds for which an address is not tried after a failure. */
  distrustMs: number;
  /** Sockets that wait. */
  idle: number;
}

const usualLimits: SocketPoolLimits = { idleMs: 60_000, ageMs: 55 * 60_000, distrustMs: 10 * 60_000, idle: 50 };

export class SocketPool {
  /** Those that wait, the longest-waiting first. */
  readonly #idle = new Set<OpenSocket>();
  readonly #distrusted = new Map<string, number>();
  readonly #limits: SocketPoolLimits;
  readonly #now: () => number;

  /** @param now Wall clock, ms. */
  constructor(limits: Partial<SocketPoolLimits> = {}, now: () => number = Date.now) {
    this.#limits = { ...usualLimits, ...limits };
    this.#now = now;
  }

  /**
   * A socket for one request; undefined if none can be opened. Such an address is not tried again for some minutes.
   * @param timeoutMs Until it is open.
   */
  async take(address: SocketAddress, timeoutMs: number): Promise<PooledSocket | undefined> {
    const { url, headers, session } = address;
    const name = nameOf(url, headers);
    for (const socket of this.#idle) {
      if (socket.name !== name || socket.session !== session) continue;
      this.#leave(socket);
      // While the machine slept, no timer ended it, and nobody answered the other end.
      const hasWaited = this.#now() - socket.waitsSince;
      if (performance.now() - socket.openedAt < this.#limits.ageMs && hasWaited <= this.#limits.idleMs) return socket;
      socket.drop();
    }
    if ((this.#distrusted.get(url) ?? 0) > performance.now()) return undefined;
    const opened = await openSocket({ url, headers, session }, name, timeoutMs);
    if (opened === "failed") this.#distrust(url);
    return opened === "refused" || opened === "failed" ? undefined : opened;
  }

  /** Keeps the socket for the next request. */
  give(socket: PooledSocket): void {
    if (!(socket instanceof OpenSocket) || socket.isClosed) return;
    socket.isUsed = true;
    socket.listener = (message) => {
      // It has closed, or says something that no request asked for.
      this.#leave(socket);
      if (message !== undefined) socket.drop();
    };
    socket.waitsSince = this.#now();
    socket.timer = setTimeout(() => this.#end(socket), this.#limits.idleMs);
    socket.timer.unref();
    this.#idle.add(socket);
    for (const oldest of this.#idle) {
      if (this.#idle.size <= this.#limits.idle) break;
      this.#end(oldest);
    }
  }

  /** The socket broke before it answered: its address is not tried again for some minutes. */
  distrust(socket: PooledSocket): void {
    if (socket instanceof OpenSocket) this.#distrust(socket.url);
  }

  close(): void {
    for (const socket of this.#idle) this.#end(socket);
  }

  #distrust(url: string): void {
    this.#distrusted.set(url, performance.now() + this.#limits.distrustMs);
  }

  #leave(socket: OpenSocket): void {
    this.#idle.delete(socket);
    clearTimeout(socket.timer);
  }

  #end(socket: OpenSocket): void {
    this.#leave(socket);
    socket.drop();
  }
}

/** Sockets with the same name are opened alike. */
const nameOf = (url: string, headers: Record<string, string>): string => `${url} ${identityOf(headers)}`;

class OpenSocket implements PooledSocket {
  isUsed = false;
  isClosed = false;
  listener: PooledSocket["listener"];
  timer: Timer | undefined;
  /** Wall clock, ms. */
  waitsSince = 0;
  readonly openedAt = performance.now();
  readonly url: string;
  readonly session: string | undefined;

  constructor(
    readonly socket: WebSocket,
    { url, session }: SocketAddress,
    readonly name: string,
  ) {
    this.url = url;
    this.session = session;
    socket.onmessage = ({ data }) => this.listener?.(typeof data === "string" ? data : "");
    socket.onclose = () => {
      this.isClosed = true;
      this.listener?.(undefined);
    };
  }

  send(text: string): void {
    this.socket.send(text);
  }

  drop(): void {
    this.listener = undefined;
    this.socket.terminate();
  }
}

/** Statuses that say nothing about the address: the request over HTTP gets them too, and is handled there. */
const ofRequest = /Expected 101 status code: (?:401|403|421|429)/;

async function openSocket(
  address: SocketAddress,
  name: string,
  timeoutMs: number,
): Promise<OpenSocket | "refused" | "failed"> {
  const { url, headers } = address;
  const proxy = proxyFor(url);
  // Bun's fetch finds the proxy by itself, its WebSocket does not.
  const via = proxy && !proxy.fault ? { proxy: process.env[proxy.variable]! } : {};
  const socket = new WebSocket(url.replace(/^http/, "ws"), { headers, ...via });
  const opened = Promise.withResolvers<"open" | "refused" | "failed">();
  const timer = setTimeout(() => opened.resolve("failed"), timeoutMs);
  socket.onopen = () => opened.resolve("open");
  socket.onerror = (event) => {
    const message = event instanceof ErrorEvent ? event.message : "";
    opened.resolve(ofRequest.test(message) ? "refused" : "failed");
  };
  socket.onclose = () => opened.resolve("failed");
  const outcome = await opened.promise;
  clearTimeout(timer);
  socket.onerror = null;
  if (outcome === "open") return new OpenSocket(socket, address, name);
  socket.terminate();
  return outcome;
}
