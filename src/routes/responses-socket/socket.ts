/** A client's WebSocket: each message is answered as the same request over HTTP would be, one after another. */

import { codecs } from "../../dialects/codecs";
import { failureMessage, ResponseChain, socketEnded } from "../../dialects/responses/socket";
import { asProxyError, ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import type { AnswerRequest } from "../../lib/net/in/caller";
import type { ClientSocket, ClientSockets, ServerSocket, SocketHandlers } from "../../lib/net/in/client-sockets";
import { readSse, type SseFrame } from "../../lib/net/stream/sse";

/** Bytes that may wait for a client; the upstream is not read while more do. */
const highWater = 256 * 1024;
/** Messages that may wait for their turn, and the characters of all of them. */
const maxWaiting = 8;
const maxWaitingLength = 32 * 1024 * 1024;

/** https://www.rfc-editor.org/rfc/rfc6455#section-7.4.1. Codex logs only well-known reasons. */
const endings: Record<Ending, readonly [code: number, reason: string]> = {
  old: [1001, "going away"],
  stopping: [1012, "service restart"],
  binary: [1003, "text only"],
  refused: [1008, "not allowed"],
};

type Ending = "old" | "stopping" | "binary" | "refused";

/** Statuses after which no further request of the socket would be served either. */
const refusals: ReadonlySet<number> = new Set([401, 403]);

/** The key may use other models. */
const isOfModel = (body: unknown): boolean =>
  isObject(body) && isObject(body.error) && body.error.code === "model_not_allowed";

export class ResponsesSocket implements SocketHandlers, ClientSocket {
  readonly #chain = new ResponseChain();
  readonly #headers: Headers;
  readonly #url: string;
  readonly #waiting: string[] = [];
  #socket: ServerSocket | undefined;
  #ageTimer: Timer | undefined;
  /** Stops the answer to the present message. */
  #running: AbortController | undefined;
  /** How the socket ends after the present answer. */
  #ending: Ending | undefined;
  #drained: (() => void) | undefined;

  /**
   * @param maxAgeMs How long it may be open.
   * @param upgrade The request that opened it: its headers count for each message.
   * @param member Whose key it has; null for the owner's.
   */
  constructor(
    readonly sockets: ClientSockets,
    readonly maxAgeMs: number,
    upgrade: Request,
    readonly member: string | null,
    readonly answer: AnswerRequest,
  ) {
    this.#url = upgrade.url;
    this.#headers = messageHeaders(upgrade.headers);
  }

  open(socket: ServerSocket): void {
    this.#socket = socket;
    this.#ageTimer = setTimeout(() => this.#end("old"), this.maxAgeMs);
    this.sockets.add(this);
  }

  message(_socket: ServerSocket, message: string | Buffer): void {
    if (typeof message !== "string") this.#breakOff(notText, "binary");
    else if (this.#running === undefined) {
      if (this.#ending === undefined) void this.#serve(message);
    } else if (this.#waiting.length < maxWaiting && this.#waitingLength() + message.length <= maxWaitingLength)
      this.#waiting.push(message);
    else this.#breakOff(tooMany, "refused");
  }

  drain(socket: ServerSocket): void {
    if (socket.getBufferedAmount() <= highWater) this.#drained?.();
  }

  close(): void {
    clearTimeout(this.#ageTimer);
    this.sockets.remove(this);
    this.#socket = undefined;
    this.#waiting.length = 0;
    this.#running?.abort();
    this.#drained?.();
  }

  retire(): void {
    this.#end("stopping");
  }

  forget(): void {
    this.#chain.forget();
  }

  /** Ends the socket now, or after the present answer. */
  #end(how: Ending): void {
    this.#ending ??= how;
    if (this.#running === undefined) this.#socket?.close(...endings[this.#ending]);
  }

  /** Ends the socket at once, whatever it is sent. */
  #breakOff(error: ProxyError, how: Ending): void {
    this.#fail(error);
    this.#socket?.close(...endings[how]);
  }

  /** Answers a message, and then those that came meanwhile. */
  async #serve(first: string): Promise<void> {
    for (let message: string | undefined = first; message !== undefined; message = this.#next()) {
      this.#running = new AbortController();
      try {
        await this.#respond(message, this.#running.signal);
      } catch (thrown) {
        this.#fail(asProxyError(thrown));
      }
      this.#running = undefined;
      this.sockets.remembers(this, this.#socket ? this.#chain.size : 0);
    }
    if (this.#ending !== undefined) this.#end(this.#ending);
  }

  #next(): string | undefined {
    if (this.#ending === undefined) return this.#waiting.shift();
    for (const _ of this.#waiting.splice(0)) this.#fail(socketEnded);
    return undefined;
  }

  async #respond(message: string, signal: AbortSignal): Promise<void> {
    const request = this.#chain.read(message);
    if (request === undefined) return;
    const { body, fixups } = request;
    this.#headers.set("content-length", String(body.length));
    const response = await this.answer(
      new Request(this.#url, { method: "POST", headers: this.#headers, body, signal }),
      fixups,
    );
    if (/event-stream/.test(response.headers.get("content-type") ?? "") && response.body)
      return this.#stream(response.body, signal);
    const error = parseJson(await response.text());
    this.#send(failureMessage(response.status, error, response.headers));
    if (refusals.has(response.status) && !isOfModel(error)) this.#ending ??= "refused";
  }

  async #stream(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    const reader = body.getReader();
    signal.addEventListener("abort", () => void reader.cancel(), { once: true });
    const events = readSse({ push: (frame) => this.#pass(frame), end() {} });
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      // The events of one piece are written to the connection together.
      this.#socket?.cork(() => events.push(value));
      await this.#roomToSend();
    }
    events.end();
  }

  #pass(frame: SseFrame): void {
    const message = this.#chain.write(frame);
    if (message !== undefined) this.#send(message);
    else if (frame.data === undefined) this.#socket?.ping();
  }

  #send(message: string): void {
    // What cannot be sent is lost, and the rest would be an answer with a gap.
    if (this.#socket?.sendText(message) === 0) this.#socket.terminate();
  }

  /** Settles when the client has read most of what was sent, or has gone. */
  async #roomToSend(): Promise<void> {
    if (this.#socket === undefined || this.#socket.getBufferedAmount() <= highWater) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    this.#drained = undefined;
  }

  #fail(error: ProxyError): void {
    const headers = new Headers(error.details.headers);
    this.#send(failureMessage(error.status, codecs.responses.encodeError(error, ""), headers));
  }

  #waitingLength(): number {
    return this.#waiting.reduce((sum, { length }) => sum + length, 0);
  }
}

/** Headers of the handshake that say nothing about a message. */
const handshakeHeaders = /^(?:connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|expect|te)$/;

function messageHeaders(upgrade: Headers): Headers {
  const headers = new Headers({ "content-type": "application/json" });
  for (const [name, value] of upgrade) if (!handshakeHeaders.test(name)) headers.set(name, value);
  return headers;
}

const notText = new ProxyError("invalid_request", "A message must be text: send the JSON in a text frame.");

const tooMany = new ProxyError(
  "rate_limit",
  "Too many messages wait on this WebSocket: its requests are served one after another. Open a second one.",
);
