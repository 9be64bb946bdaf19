/** Bytes on sockets, where a well-behaved client or server would hide what is tested. */
import { connect, createServer, type Socket } from "node:net";
import { patienceMs } from "./until";

interface RawAnswer {
  text: string;
  /** The status of each answer, in order; answers follow one another on one connection. */
  statuses: number[];
  /** The other side ended the connection. */
  closed: boolean;
}

/** Waits for the other side to end the connection, which a busy machine does late after the answer. */
export const untilClosed = { quiet: patienceMs, timeoutMs: patienceMs };

/** What comes back for exactly these bytes, from the address or from the socket of this path: once it has been quiet for a moment, or the connection has ended. */
export function sendRaw(
  url: string,
  bytes: string | Uint8Array,
  {
    quiet = 100,
    timeoutMs = 3000,
    host = new URL(url).hostname,
    path,
  }: { quiet?: number; timeoutMs?: number; host?: string; path?: string } = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let text = "";
    let closed = false;
    let hush: Timer | undefined;
    const done = () => {
      clearTimeout(limit);
      clearTimeout(hush);
      socket.destroy();
      resolve({
        text,
        statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status)),
        closed,
      });
    };
    const limit = setTimeout(done, timeoutMs);
    const to = path === undefined ? { port: Number(new URL(url).port), host: host.replace(/^\[|\]$/g, "") } : { path };
    const socket = connect(to, () => socket.write(bytes));
    socket.on("data", (data) => {
      text += data;
      clearTimeout(hush);
      hush = setTimeout(done, quiet);
    });
    socket.on("close", () => {
      closed = true;
      done();
    });
    socket.on("error", () => {});
  });
}

export interface RawServer extends AsyncDisposable {
  url: string;
  /** Connections so far. */
  readonly connections: number;
  readonly open: number;
  /** Closes its half of every connection. */
  end(): void;
}

/** A server that does whatever the test says once a request has begun to arrive. */
export async function startRaw(onRequest: (socket: Socket, head: string) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (data) => {
      // One answer for each request, not for each packet of a large one.
      if (/^(?:GET|POST|CONNECT) /.test(data.toString().slice(0, 8))) onRequest(socket, data.toString());
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    get connections() {
      return connections;
    },
    get open() {
      return sockets.size;
    },
    end() {
      for (const socket of sockets) socket.end();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
