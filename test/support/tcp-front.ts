/** Stands before a server as its address, and cuts, silences or delays the connections to it. */
import { connect, createServer, type Server, type Socket } from "node:net";

export interface TcpFront extends AsyncDisposable {
  port: number;
  /** From now on nothing goes through the connections there are, ever, and new ones are accepted but get no answer, until `speak`. */
  silence(): void;
  /** Breaks every connection, and from now on accepts none, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** New connections work again; those that were silenced stay silent. */
  speak(): void;
  /**
   * Breaks the next connection on which the client sends these bytes.
   * @param delivered Whether the server still gets them: then it does what they say, and nobody hears of it.
   */
  cutAt(bytes: string, delivered: boolean): void;
  /** From now on each answer takes so many ms longer. */
  delay(ms: number): void;
  /** How often `cutAt` has cut. */
  readonly cuts: number;
  /** How many connections are open now. */
  readonly open: number;
}

interface Pair {
  client: Socket;
  server: Socket;
  isSilent: boolean;
  /** When the last answer that is delayed goes on: none overtakes another. */
  goesOnAt: number;
}

export async function startTcpFront(port: number): Promise<TcpFront> {
  const pairs = new Set<Pair>();
  const trigger: { bytes?: string; delivered: boolean } = { delivered: false };
  let isSilent = false;
  let [cuts, delayMs] = [0, 0];

  const breakPair = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.resetAndDestroy();
    pair.server.destroy();
  };
  const listener: Server = createServer((client) => {
    const pair: Pair = { client, server: connect(port, "127.0.0.1"), isSilent, goesOnAt: 0 };
    const { server } = pair;
    pairs.add(pair);
    client.on("data", (chunk) => {
      if (pair.isSilent) return;
      if (trigger.bytes === undefined || !chunk.includes(trigger.bytes)) return void server.write(chunk);
      trigger.bytes = undefined;
      cuts += 1;
      if (!trigger.delivered) return breakPair(pair);
      // What the server answers is not passed on: it has done it, and nobody knows.
      pair.isSilent = true;
      server.write(chunk);
      server.once("data", () => breakPair(pair));
    });
    const pass = (chunk: Uint8Array) => {
      if (!pair.isSilent) client.write(chunk);
    };
    server.on("data", (chunk: Buffer) => {
      pair.goesOnAt = Math.max(pair.goesOnAt, performance.now() + delayMs);
      const ms = pair.goesOnAt - performance.now();
      if (delayMs > 0 || ms > 0) setTimeout(pass, ms, chunk);
      else pass(chunk);
    });
    client.on("close", () => {
      pairs.delete(pair);
      server.destroy();
    });
    server.on("close", () => {
      if (!pair.isSilent) client.destroy();
    });
    for (const socket of [client, server]) socket.on("error", () => {});
  });
  const listen = (at: number) => new Promise<void>((resolve) => listener.listen(at, "127.0.0.1", resolve));
  await listen(0);
  const own = (listener.address() as { port: number }).port;
  return {
    port: own,
    async refuse() {
      const closed = new Promise((resolve) => listener.close(resolve));
      for (const pair of [...pairs]) breakPair(pair);
      await closed;
    },
    accept: () => listen(own),
    silence() {
      isSilent = true;
      for (const pair of pairs) pair.isSilent = true;
    },
    speak() {
      isSilent = false;
    },
    cutAt(bytes, delivered) {
      Object.assign(trigger, { bytes, delivered });
    },
    delay(ms) {
      delayMs = ms;
    },
    get cuts() {
      return cuts;
    },
    get open() {
      return pairs.size;
    },
    async [Symbol.asyncDispose]() {
      for (const pair of [...pairs]) breakPair(pair);
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
