/** Stands before the scripted upstream as its only address, to stall or break what the upstream itself would answer. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** Where an answer stops for ever. */
export type StallPoint = "before the headers" | "after the headers" | "in the middle of the body";

interface Arrived {
  path: string;
  headers: Record<string, string>;
  /** Which connection it came on, counted from 1. */
  connection: number;
}

export interface Front extends AsyncDisposable {
  /** By name, so that each new connection can be told from a kept one. */
  url: string;
  /** The next requests to this path are never answered beyond this point. */
  stall(path: string, point: StallPoint, times?: number): void;
  /** Whether a connection may serve another request after its first. */
  keepsConnections: boolean;
  /** Asked for each request: whether its connection breaks at once, unanswered. */
  breaks: (arrived: Arrived) => boolean;
  /** The JSON that is answered without asking the upstream, where there is any. */
  answers: (path: string) => string | undefined;
  /** Everything that came, in order. */
  seen: Arrived[];
}

export async function startFront(upstream: string): Promise<Front> {
  const connections = new Map<Socket, number>();
  let stalling: { path: string; point: StallPoint; times: number } | undefined;

  const server = createServer((request, response) => void answer(request, response));
  server.keepAliveTimeout = 0;
  server.on("connection", (socket: Socket) => {
    connections.set(socket, connections.size + 1);
    socket.on("error", () => {});
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "/";
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const arrived = { path, headers, connection: connections.get(request.socket) ?? 0 };
    front.seen.push(arrived);
    if (front.breaks(arrived)) return void request.socket.destroy();
    const point = stalling?.path === path && stalling.times-- > 0 ? stalling.point : undefined;
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (point === "before the headers") return;
    const { host, connection, "content-length": _, "transfer-encoding": __, ...passed } = headers;
    const own = front.answers(path);
    const answered =
      own === undefined
        ? await fetch(upstream + path, {
            method: request.method,
            headers: passed,
            body: body.length > 0 ? body : undefined,
            redirect: "manual",
          })
        : new Response(own, { headers: { "content-type": "application/json" } });
    // The token names the model host: it is here.
    const text = (await answered.text()).replaceAll(upstream, front.url);
    const type = answered.headers.get("content-type") ?? "application/json";
    response.writeHead(answered.status, {
      "content-type": type,
      "content-length": Buffer.byteLength(text),
      ...(front.keepsConnections ? {} : { connection: "close" }),
    });
    if (point === "after the headers") return response.flushHeaders();
    const whole = Buffer.from(text);
    if (point === undefined) return void response.end(whole);
    // An event is there whole, where the body is made of events.
    response.write(whole.subarray(0, type.includes("event-stream") ? text.indexOf("\n\n") + 40 : whole.length / 2));
  }

  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const front: Front = {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    stall(path, point, times = 1) {
      stalling = { path, point, times };
    },
    keepsConnections: true,
    breaks: () => false,
    answers: () => undefined,
    seen: [],
    async [Symbol.asyncDispose]() {
      for (const socket of connections.keys()) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
  return front;
}
