/** A server that passes everything on to another and notes what a client sent. */

export interface Sent {
  method: string;
  /** With its query. */
  path: string;
  headers: Headers;
  body: string;
  status: number;
}

interface Witness extends Disposable {
  url: string;
  sent: Sent[];
}

export function startWitness(to: string): Witness {
  const sent: Sent[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const bytes = await request.bytes();
      const { method, headers } = request;
      const body = new TextDecoder().decode(
        headers.get("content-encoding") === "zstd" ? Bun.zstdDecompressSync(bytes) : bytes,
      );
      const passed = new Headers(headers);
      passed.delete("host");
      passed.set("accept-encoding", "identity");
      const answer = await fetch(to + pathname + search, {
        method,
        headers: passed,
        body: bytes.length > 0 ? bytes : undefined,
      });
      sent.push({ method, path: pathname + search, headers, body, status: answer.status });
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
  });
  return { url: server.url.origin, sent, [Symbol.dispose]: () => void server.stop(true) };
}
