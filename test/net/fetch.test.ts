import { describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { ProxyError } from "../../src/errors";
import { callOut, discard, readBody, readStart } from "../../src/net/fetch";
import { isLoopbackUrl } from "../../src/net/proxy";

const call = { method: "POST", headers: {}, body: "{}", headersWithin: 1000, who: "The service" };
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (thrown) => thrown as ProxyError,
  );

/** A server of raw sockets: what each connection gets is up to the test. */
async function rawServer(serve: (socket: Socket, count: number) => void) {
  let count = 0;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    serve(socket, ++count);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}/`, connections: () => count, [Symbol.dispose]: () => void server.close() };
}

test("a body that nobody wants, and that broke meanwhile, is nobody's failure", async () => {
  using server = await rawServer((socket) =>
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc");
      setTimeout(() => socket.resetAndDestroy(), 5);
    }),
  );
  const unforeseen: unknown[] = [];
  const note = (reason: unknown) => void unforeseen.push(reason);
  process.on("unhandledRejection", note);
  const response = await callOut(server.url, call);
  await Bun.sleep(50);
  discard(response.body);
  await Bun.sleep(20);
  process.off("unhandledRejection", note);
  expect(unforeseen).toEqual([]);
});

describe("a call that fails says why, in words", () => {
  test("U01: refused, after one more try", async () => {
    using holder = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const { url } = holder;
    holder.stop(true);
    const retries: string[] = [];
    const error = await failure(callOut(url.href, { ...call, retried: (why) => void retries.push(why) }));
    expect(error).toMatchObject({ kind: "upstream", status: 502, message: "The service refused the connection." });
    expect(retries).toHaveLength(1);
  });

  test("U02: a name that does not resolve", async () => {
    const error = await failure(callOut("https://nothing.invalid/", { ...call, headersWithin: 8000 }));
    expect(error).toMatchObject({ kind: "upstream", status: 502 });
  }, 15_000);

  test("U04: silence, at our own limit", async () => {
    using server = await rawServer(() => {});
    const startedAt = performance.now();
    const error = await failure(callOut(server.url, { ...call, headersWithin: 150 }));
    expect(error).toMatchObject({ kind: "timeout", status: 504 });
    expect(performance.now() - startedAt).toBeLessThan(1000);
    expect(server.connections()).toBe(1);
  });

  test("U06: a reset at once is tried once more, a later one is not", async () => {
    using early = await rawServer((socket, count) =>
      socket.once("data", () =>
        count === 1 ? socket.resetAndDestroy() : socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
      ),
    );
    expect(await (await callOut(early.url, call)).text()).toBe("ok");
    expect(early.connections()).toBe(2);

    using late = await rawServer((socket) =>
      socket.once("data", () => setTimeout(() => socket.resetAndDestroy(), 400)),
    );
    expect(await failure(callOut(late.url, call))).toMatchObject({
      kind: "upstream",
      message: "The service broke the connection before its answer was complete.",
    });
    expect(late.connections()).toBe(1);
  });

  test("SS13: a redirect is not followed, with our key in hand least of all", async () => {
    let seen = 0;
    using evil = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++seen)) });
    for (const status of [301, 302, 307, 308]) {
      using server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => new Response(null, { status, headers: { location: evil.url.href } }),
      });
      expect(await failure(callOut(server.url.href, call))).toMatchObject({ kind: "upstream" });
    }
    expect(seen).toBe(0);
  });

  test("U03: a certificate nobody vouches for is never accepted", async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    try {
      using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
      expect(await failure(callOut(`https://127.0.0.1:${plain.port}/`, call))).toMatchObject({ kind: "upstream" });
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });

  test("the caller's own abort stays an abort", async () => {
    using server = await rawServer(() => {});
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const error = await failure(callOut(server.url, { ...call, signal: controller.signal }));
    expect(error).not.toBeInstanceOf(ProxyError);
    expect(error?.name).toBe("AbortError");
  });
});

test("PR07: a proxy in the environment is not asked for this machine", async () => {
  let asked = 0;
  using proxy = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++asked)) });
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("direct") });
  process.env.HTTP_PROXY = proxy.url.href;
  try {
    expect(await (await callOut(server.url.href, call)).text()).toBe("direct");
  } finally {
    delete process.env.HTTP_PROXY;
  }
  expect(asked).toBe(0);
});

describe("a body", () => {
  const large = (bytes: number) =>
    new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(bytes)) }));

  test("SS11: larger than it may be is given up while it comes", async () => {
    expect(await failure(readBody(large(1024 * 1024), 4 * 1024 * 1024, "The service"))).toMatchObject({
      kind: "upstream",
      message: "The service sent an answer of over 4 MiB.",
    });
  });

  test("SS23: of an error is read no further than its beginning", async () => {
    expect((await readStart(large(100_000), 64 * 1024)).length).toBe(64 * 1024);
  });

  test("of an error that never ends is waited for no longer than it is worth", async () => {
    const dripping = new Response(
      new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("why")) }),
    );
    expect(await readStart(dripping, 64 * 1024, 50)).toBe("why");
  });

  test("that is small comes whole", async () => {
    expect(Buffer.from(await readBody(new Response("hello"), 10, "x")).toString()).toBe("hello");
    expect((await readBody(new Response(null), 10, "x")).length).toBe(0);
  });
});

test("which addresses are this machine", () => {
  for (const url of ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9/x", "http://[::1]:3"])
    expect(isLoopbackUrl(url)).toBe(true);
  for (const url of ["http://localhost.evil", "http://128.0.0.1", "https://api.github.com", "http://0.0.0.0"])
    expect(isLoopbackUrl(url)).toBe(false);
});
