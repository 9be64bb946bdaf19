/**
 * A WebSocket client that forgives nothing, as Codex' does not: each frame must be an unmasked, uncompressed text of one
 * JSON event; pings are answered, and anything else is an error. (RFC 6455)
 */
import { connect, type Socket } from "node:net";

export type SocketEvent = Record<string, unknown> & { type: string };

interface FrameClient extends AsyncDisposable {
  /** The head of the answer to the handshake. */
  head: string;
  status: number;
  /** Sends a text frame of JSON, or these bytes as they are. */
  send(message: object | Uint8Array): void;
  /** The next event; undefined when the connection has ended. @throws Error for a frame that Codex would not take. */
  next(): Promise<SocketEvent | undefined>;
  /** Sends a request and gives its events, up to the one that ends it. */
  ask(body: object): Promise<SocketEvent[]>;
  /** Code and reason of the close frame; code 1006 if the connection ended without one. */
  closed: Promise<{ code: number; reason: string }>;
  pings: number;
  socket: Socket;
}

const terminal = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

const offer =
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nOpenAI-Beta: responses_websockets=2026-02-06\r\n";

/** A masked frame of a client; the mask is zeros, so that the payload reads as it is. */
export function clientFrame(payload: string | Uint8Array, opcode = 1, final = true): Buffer {
  const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  const head = Buffer.alloc(bytes.length < 126 ? 2 : bytes.length < 65_536 ? 4 : 10);
  head[0] = (final ? 0x80 : 0) | opcode;
  head[1] = 0x80 | (bytes.length < 126 ? bytes.length : bytes.length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(bytes.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(bytes.length), 2);
  return Buffer.concat([head, Buffer.alloc(4), bytes]);
}

/** Opens a WebSocket. A handshake that is refused has no events. */
export async function openFrames(
  url: string,
  { path = "/v1/responses", headers = {} as Record<string, string> } = {},
): Promise<FrameClient> {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  const own = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${offer}${own.join("")}\r\n`);

  let held = Buffer.alloc(0);
  let more = Promise.withResolvers<void>();
  let ended = false;
  const wake = () => {
    more.resolve();
    more = Promise.withResolvers();
  };
  socket.on("data", (data: Buffer) => {
    held = Buffer.concat([held, data]);
    wake();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    ended = true;
    wake();
  });
  const headEnd = () => held.indexOf("\r\n\r\n");
  while (headEnd() === -1 && !ended) await more.promise;
  const head = held.subarray(0, headEnd()).toString();
  held = held.subarray(headEnd() + 4);

  const closing = Promise.withResolvers<{ code: number; reason: string }>();
  const readFrame = (): { opcode: number; payload: Buffer } | undefined => {
    if (held.length < 2) return undefined;
    const [first = 0, second = 0] = held;
    if ((first & 0x70) !== 0) throw new Error("A frame is compressed.");
    if ((second & 0x80) !== 0) throw new Error("A server's frame is masked.");
    if ((first & 0x80) === 0) throw new Error("A message is in pieces.");
    const short = second & 0x7f;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (held.length < start) return undefined;
    const length = short < 126 ? short : short === 126 ? held.readUInt16BE(2) : Number(held.readBigUInt64BE(2));
    if (held.length < start + length) return undefined;
    const payload = held.subarray(start, start + length);
    held = held.subarray(start + length);
    return { opcode: first & 0x0f, payload };
  };
  const client: FrameClient = {
    head,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    pings: 0,
    closed: closing.promise,
    socket,
    send: (message) =>
      void socket.write(message instanceof Uint8Array ? message : clientFrame(JSON.stringify(message))),
    async next() {
      for (;;) {
        const frame = readFrame();
        if (frame?.opcode === 1) {
          const event: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(frame.payload));
          if (typeof (event as SocketEvent)?.type !== "string") throw new Error("An event has no type.");
          return event as SocketEvent;
        }
        if (frame?.opcode === 9) {
          client.pings += 1;
          socket.write(clientFrame(frame.payload, 10));
        } else if (frame?.opcode === 8) {
          const code = frame.payload.length < 2 ? 1005 : frame.payload.readUInt16BE(0);
          closing.resolve({ code, reason: frame.payload.subarray(2).toString() });
          socket.end(clientFrame(frame.payload, 8));
          return undefined;
        } else if (frame !== undefined) throw new Error(`A frame has the opcode ${frame.opcode}.`);
        else if (ended) {
          closing.resolve({ code: 1006, reason: "" });
          return undefined;
        } else await more.promise;
      }
    },
    async ask(body) {
      client.send({ type: "response.create", ...body });
      const events: SocketEvent[] = [];
      for (;;) {
        const event = await client.next();
        if (event === undefined) throw new Error(`The connection ended after ${events.length} events.`);
        events.push(event);
        if (terminal.has(event.type)) return events;
      }
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  };
  return client;
}
