/**
 * A request of the responses dialect over the upstream's WebSocket, answered as the same request over HTTP is: with a
 * status, and with a stream of events. (VS Code's Copilot client: `wss://{host}/responses`, frames of JSON.)
 */
import { ProxyError } from "../../errors";
import { isObject, parseJson } from "../../json";
import { editMembers } from "../../net/json/json-edit";
import { type CallResponse, openBody } from "../../net/out/body";
import { startClock } from "../../net/out/clock";
import type { OutgoingCall } from "../../net/out/fetch";
import { statusOf } from "./failure-match";
import type { PooledSocket, SocketAddress, SocketPool } from "./socket-pool";

export interface SocketCall extends SocketAddress, Pick<OutgoingCall, "controller" | "limits" | "who"> {
  /** The body of the request over HTTP. */
  body: string;
  initiator?: "user" | "agent";
  /** The quota that the last event reports. */
  quota?(snapshots: unknown): void;
  /** Called with each message as it came. */
  received?(message: string): void;
}

/** The request was not taken: it may be sent again. */
export class SocketBroken extends Error {
  /** @param isSpent The upstream takes requests on a new socket. Else the socket, which had served before, broke at once. */
  constructor(
    readonly error: ProxyError,
    readonly isSpent: boolean,
  ) {
    super(error.message);
  }
}

/** Milliseconds until a socket is open. */
const openingMs = 30_000;
/** Milliseconds in which a socket that was broken all along shows it. */
const atOnceMs = 1000;
/** Bytes of events that may wait for the reader: a WebSocket cannot be asked to pause. */
const maxWaiting = 32 * 1024 * 1024;

const terminal = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error",
]);

/**
 * @returns Undefined if no socket could be opened: nothing was sent.
 * @throws SocketBroken; ProxyError `upstream`, `timeout`; the reason of the caller's controller.
 */
export async function callOverSocket(pool: SocketPool, call: SocketCall): Promise<CallResponse | undefined> {
  const socket = await pool.take(call, Math.min(openingMs, call.limits.headers));
  if (!socket) return undefined;
  if (call.controller?.signal.aborted) {
    pool.give(socket);
    throw call.controller.signal.reason;
  }
  return await new Exchange(pool, socket, call).response.promise;
}

const encoder = new TextEncoder();

class Exchange {
  readonly response = Promise.withResolvers<CallResponse>();
  readonly #clock: ReturnType<typeof startClock>;
  readonly #sentAt = performance.now();
  #events: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isOver = false;

  constructor(
    readonly pool: SocketPool,
    readonly socket: PooledSocket,
    readonly call: SocketCall,
  ) {
    const { limits, who, url, controller, body, initiator } = call;
    this.#clock = startClock(limits, who, url, controller);
    this.#clock.signal.addEventListener("abort", () => this.#abort(this.#clock.signal.reason), { once: true });
    socket.listener = (message) => {
      if (message === undefined) this.#broke();
      else this.#receive(message);
    };
    socket.send(editMembers(body, { type: "response.create", ...(initiator && { initiator }) }, ["stream"]));
  }

  #receive(message: string): void {
    this.call.received?.(message);
    const type = typeOf(message);
    if (type === undefined) this.#fail(badMessage());
    else if (this.#events || type !== "error" || !this.#answerError(message)) this.#pass(type, message);
  }

  #pass(type: string, message: string): void {
    const events = this.#events ?? this.#begin();
    const data = message.includes("\n") ? message.replaceAll("\n", "\ndata: ") : message;
    events.enqueue(encoder.encode(`event: ${type}\ndata: ${data}\n\n`));
    if (terminal.has(type)) this.#complete(type, message);
    else if ((events.desiredSize ?? 0) < -maxWaiting) this.#fail(tooSlow());
  }

  /**
   * An error in place of an answer. Those of Copilot itself have no status (VS Code's client, 2026-10): it follows from
   * the code.
   * @returns False for a message that cannot be read as an error.
   */
  #answerError(message: string): boolean {
    const event = parseJson(message);
    if (!isObject(event)) return false;
    const { code } = isObject(event.error) ? event.error : event;
    const stated = event.status ?? event.status_code ?? statusOf(typeof code === "string" ? code : "");
    const status = typeof stated === "number" && stated >= 400 && stated <= 599 ? stated : 502;
    if (code === spentCode) {
      this.#abandon();
      this.#clock.stop();
      this.response.reject(new SocketBroken(spentError(), true));
      return true;
    }
    this.#noteQuota(message);
    const sent = isObject(event.headers) ? Object.entries(event.headers) : [];
    const headers = new Headers(sent.filter(([, value]) => typeof value === "string") as [string, string][]);
    const stream = new Blob([JSON.stringify({ error: event.error ?? event })]).stream();
    this.#end();
    this.socket.drop();
    this.#answer(status, headers, stream);
    return true;
  }

  #begin(): ReadableStreamDefaultController<Uint8Array> {
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#events = controller;
        },
        cancel: () => this.#abandon(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: 1 }),
    );
    this.#answer(200, new Headers({ "content-type": "text/event-stream" }), stream);
    return this.#events!;
  }

  #answer(status: number, headers: Headers, stream: ReadableStream<Uint8Array>): void {
    this.#clock.answered();
    const { who, url } = this.call;
    const body = openBody({ body: stream }, this.#clock, who, url);
    this.response.resolve({ status, ok: status === 200, headers, body, overSocket: true });
  }

  #complete(type: string, message: string): void {
    this.#end();
    this.#events?.close();
    this.#noteQuota(message);
    // After an error nobody knows what else is wrong with it.
    if (type === "error") this.socket.drop();
    else this.pool.give(this.socket);
  }

  #noteQuota(message: string): void {
    if (this.call.quota && message.includes("copilot_quota_snapshots")) this.call.quota(snapshotsIn(message));
  }

  #broke(): void {
    if (this.#isOver) return;
    const error = brokenError();
    if (!this.#events) {
      // The upstream may just have been closing it. A request that a new socket took may have been processed.
      const wasClosing = this.socket.isUsed && performance.now() - this.#sentAt < atOnceMs;
      this.#clock.stop();
      this.#end();
      if (!this.socket.isUsed) this.pool.distrust(this.socket);
      this.response.reject(wasClosing ? new SocketBroken(error, false) : error);
    } else this.#fail(error);
  }

  #fail(error: ProxyError): void {
    this.#abandon();
    this.response.reject(error);
    // The body's reader is given the cause.
    this.#events?.error(error);
    if (!this.#events) this.#clock.stop();
  }

  /** A limit has passed, or nobody wants the answer. */
  #abort(reason: unknown): void {
    this.#abandon();
    this.response.reject(reason);
  }

  /** The rest of the answer is not wanted, and the upstream can only be told so by the end of the socket. */
  #abandon(): void {
    if (this.#isOver) return;
    this.#end();
    this.socket.drop();
  }

  #end(): void {
    this.#isOver = true;
    this.socket.listener = undefined;
  }
}

const typeFirst = '{"type":"';

/** The type of an event; undefined for a message that is none. */
function typeOf(message: string): string | undefined {
  if (message.startsWith(typeFirst)) return message.slice(typeFirst.length, message.indexOf('"', typeFirst.length));
  const event = parseJson(message);
  return isObject(event) && typeof event.type === "string" ? event.type : undefined;
}

function snapshotsIn(message: string): unknown {
  const event = parseJson(message);
  if (!isObject(event)) return undefined;
  return (
    event.copilot_quota_snapshots ?? (isObject(event.response) ? event.response.copilot_quota_snapshots : undefined)
  );
}

/** OpenAI's answer on a socket that is over an hour old. */
const spentCode = "websocket_connection_limit_reached";

const spentError = () =>
  new ProxyError("upstream", "GitHub Copilot takes no more requests on this WebSocket.", { code: spentCode });

const brokenError = () =>
  new ProxyError("upstream", "GitHub Copilot closed the WebSocket before it had answered.", {
    code: "upstream_disconnected",
  });

const badMessage = () =>
  new ProxyError("upstream", "GitHub Copilot sent a message over the WebSocket that is not an event.", {
    code: "upstream_bad_event",
  });

const tooSlow = () =>
  new ProxyError("upstream", "Over 32 MiB of the answer wait for the client, which reads too slowly; it was given up.");
