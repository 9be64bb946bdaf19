/** Scenario: calls to other servers: how they fail, their clock, and their bodies. */
import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { ProxyError } from "../../../src/lib/errors";
import { isLoopbackUrl } from "../../../src/lib/net/address";
import { openBody, readBody, readStart, readText } from "../../../src/lib/net/out/body";
import { singleLimit, startClock } from "../../../src/lib/net/out/clock";
import { callOut } from "../../../src/lib/net/out/fetch";
import { startRaw } from "../../support/raw-socket";
import { until } from "../../support/until";

const call = { method: "POST" as const, headers: {}, body: "{}", limits: singleLimit(5000), who: "The service" };
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (thrown) => thrown as ProxyError,
  );

/** @param retries Gets the code of each error after which a call is repeated. */
const listening = (retries: string[] = []) => ({ retried: (why: string) => void retries.push(why), resent() {} });

test("an unread body that breaks off causes no unhandled error", async () => {
  const answered = Promise.withResolvers<Socket>();
  await using server = await startRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc");
    answered.resolve(socket);
  });
  const unforeseen: unknown[] = [];
  const note = (reason: unknown) => void unforeseen.push(reason);
  process.on("unhandledRejection", note);
  const broken = await callOut(server.url, call);
  const socket = await answered.promise;
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resetAndDestroy();
  await closed;
  // Another answer from the same place: what the first has come to is known by then.
  const other = await callOut(server.url, call);
  broken.body.cancel();
  other.body.cancel();
  await new Promise(setImmediate);
  process.off("unhandledRejection", note);
  expect(unforeseen).toEqual([]);
});

test("a body that is let go when all was said leaves its connection to the next call, though its end comes later", async () => {
  await using server = await startRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nlast\r\n");
    setTimeout(() => socket.write("0\r\n\r\n"), 30);
  });
  let calls = 0;
  await until(async () => {
    const { body } = await callOut(server.url, call);
    expect(Buffer.from((await body.read())!).toString()).toBe("last");
    body.release();
    await Bun.sleep(100);
    return ++calls > server.connections;
  }, "a connection serves twice");
});

test("a connection that is refused is tried once more, and then told in words", async () => {
  using holder = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { url } = holder;
  holder.stop(true);
  const retries: string[] = [];
  const error = await failure(callOut(url.href, { ...call, listener: listening(retries) }));
  expect(error).toMatchObject({ kind: "upstream", status: 502, message: "The service refused the connection." });
  expect(retries).toHaveLength(1);
});

test("a name that does not resolve is told in words", async () => {
  const error = await failure(callOut("https://nothing.invalid/", { ...call, limits: singleLimit(8000) }));
  expect(error).toMatchObject({ kind: "upstream", status: 502 });
});

test("an upstream that stays silent is given up at our own limit", async () => {
  await using server = await startRaw(() => {});
  const error = await failure(callOut(server.url, { ...call, limits: singleLimit(150) }));
  expect(error).toMatchObject({ kind: "timeout", status: 504, message: "The service did not answer within 0.15 s." });
  expect(server.connections).toBe(1);
});

test("a redirect is not followed, with our key in hand least of all", async () => {
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

test("an untrusted certificate is never accepted", async () => {
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
  await using server = await startRaw(() => {});
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  const error = await failure(callOut(server.url, { ...call, signal: controller.signal }));
  expect(error).not.toBeInstanceOf(ProxyError);
  expect(error?.name).toBe("AbortError");
});

/** Answers the first request of each connection, and breaks at the next. */
async function closing(delay = 0) {
  const seen: string[] = [];
  const sockets: Socket[] = [];
  const server = await startRaw((socket, head) => {
    const isFirst = !sockets.includes(socket);
    if (isFirst) sockets.push(socket);
    const [method] = head.split(" ");
    const speaker = /x-initiator: (\w+)/i.exec(head)?.[1] ?? "";
    seen.push(`${method} on ${sockets.indexOf(socket) + 1} ${speaker}`.trim());
    if (isFirst) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    else setTimeout(() => socket.resetAndDestroy(), delay);
  });
  return { seen, server };
}
const asUser = { ...call, headers: { "x-initiator": "user" } };
const asAgent = { "x-initiator": "agent" };
const first = async (url: string) => expect(await readText(await callOut(url, asUser), 10)).toBe("ok");
const byName = (url: string) => url.replace("127.0.0.1", "localhost");

test("a request that breaks on a kept connection is sent once more, on a fresh one if the caller allows it, and the caller is notified", async () => {
  const { seen, server } = await closing();
  await using raw = server;
  await first(byName(raw.url));
  const told: string[] = [];
  const listener = { ...listening(), resent: (error: ProxyError) => void told.push(error.message) };
  const again = { ...asUser, listener, headersAgain: () => asAgent };
  expect(await readText(await callOut(byName(raw.url), again), 10)).toBe("ok");
  expect(seen).toEqual(["POST on 1 user", "POST on 1 user", "POST on 2 agent"]);
  expect(told).toEqual(["The service broke the connection before its answer was complete."]);
});

test.each([
  ["where the caller does not want it", true, 0, false],
  ["where an address does not tell that the connection was kept", false, 0, true],
  ["where it broke after a while", true, 400, true],
])("a request that breaks on a kept connection is sent once %s", async (_, named, delay, wanted) => {
  const { seen, server } = await closing(delay);
  await using raw = server;
  const url = named ? byName(raw.url) : raw.url;
  await first(url);
  const listener = wanted ? listening() : undefined;
  expect(await failure(callOut(url, { ...asUser, listener }))).toMatchObject({
    kind: "upstream",
    status: 502,
    message: "The service broke the connection before its answer was complete.",
  });
  expect(seen).toEqual(["POST on 1 user", "POST on 1 user"]);
});

test("a request that breaks on a fresh connection is sent once: the first to a host, and one after a kept one was closed", async () => {
  const closed = Promise.withResolvers<void>();
  let posts = 0;
  await using raw = await startRaw((socket) => {
    if (++posts !== 2) return void socket.resetAndDestroy();
    socket.on("close", () => closed.resolve());
    // Nothing says that the connection will be closed.
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  const listener = listening();
  const url = byName(raw.url);
  expect(await failure(callOut(url, { ...asUser, listener }))).toMatchObject({ kind: "upstream" });
  expect(posts).toBe(1);
  await first(url);
  await closed.promise;
  expect(await failure(callOut(url, { ...asUser, listener }))).toMatchObject({ kind: "upstream" });
  expect([posts, raw.connections]).toEqual([3, 3]);
});

test("a GET is asked again: by Bun on a kept connection, by us on a fresh one", async () => {
  const { seen, server } = await closing();
  await using raw = server;
  const get = { ...call, method: "GET" as const, body: undefined };
  for (let turn = 0; turn < 2; turn++) expect(await readText(await callOut(raw.url, get), 10)).toBe("ok");
  expect(seen).toEqual(["GET on 1", "GET on 1", "GET on 2"]);

  let asked = 0;
  await using once = await startRaw((socket) => {
    if (++asked === 1) socket.resetAndDestroy();
    else socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  const retries: string[] = [];
  const answer = await callOut(once.url, { ...get, listener: listening(retries) });
  expect([await readText(answer, 10), retries]).toEqual(["ok", ["ECONNRESET"]]);
});

const stalling = (head: string) => startRaw((socket) => void socket.write(head));
const limits = { headers: 5000, idle: 200, total: 5000 };

test("a body that stalls is given up, wherever it stalls and whoever reads it", async () => {
  for (const head of [
    "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
  ])
    for (const read of [readBody, readText]) {
      await using server = await stalling(head);
      const answer = callOut(server.url, { ...call, limits });
      expect(await failure(answer.then(async (each) => void (await read(each, 1000))))).toMatchObject({
        kind: "timeout",
        status: 504,
        message: "The service sent nothing for 0.2 s before its answer was complete; it was given up.",
      });
    }
});

test("a small body that breaks off is an error of the network", async () => {
  await using server = await startRaw((socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc"));
  const error = await failure(callOut(server.url, call).then((answer) => readText(answer, 1000)));
  expect(error).toMatchObject({ kind: "upstream" });
});

test("bytes that keep coming are no silence, until the whole took too long", async () => {
  await using server = await startRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
    const dripping = setInterval(() => socket.write("x"), 20);
    socket.on("close", () => clearInterval(dripping));
  });
  const slow = { headers: 5000, idle: 4000, total: 700 };
  let bytes = 0;
  const error = await failure(
    callOut(server.url, { ...call, limits: slow }).then(async ({ body }) => {
      for (let piece = await body.read(); piece; piece = await body.read()) bytes += piece.length;
    }),
  );
  expect(error).toMatchObject({
    kind: "timeout",
    message: "The service's answer was not complete after 0.7 s; it was given up.",
  });
  expect(bytes).toBeGreaterThan(0);
});

test("a reader that asks for nothing leaves the upstream its time", async () => {
  const stream = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from("late")) });
  const clock = startClock(limits, "The service", "http://127.0.0.1/");
  clock.answered();
  const body = openBody(new Response(stream), clock, "The service", "http://127.0.0.1/");
  await Bun.sleep(limits.idle * 2);
  expect(Buffer.from((await body.read())!).toString()).toBe("late");
  expect(await failure(body.read())).toMatchObject({ kind: "timeout" });
});

test("the caller's own abort ends the reading of a body with its reason", async () => {
  await using server = await stalling("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc");
  const leaving = new AbortController();
  const { body } = await callOut(server.url, { ...call, signal: leaving.signal });
  expect(await body.read()).toHaveLength(3);
  const rest = failure(body.read());
  leaving.abort(new ProxyError("permission", "The owner has cancelled it."));
  expect(await rest).toMatchObject({ kind: "permission" });
});

const answerOf = (stream: ReadableStream<Uint8Array> | null, limits = singleLimit(5000)) => ({
  body: openBody(
    new Response(stream),
    startClock(limits, "The service", "http://127.0.0.1/"),
    "The service",
    "http://127.0.0.1/",
  ),
});
const large = (bytes: number) =>
  answerOf(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(bytes)) }));

test("a body: larger than it may be is given up while it comes", async () => {
  expect(await failure(readBody(large(1024 * 1024), 4 * 1024 * 1024))).toMatchObject({
    kind: "upstream",
    message: "The service sent an answer of over 4 MiB.",
  });
});

test("the body of an error is read no further than its beginning", async () => {
  expect((await readStart(large(100_000), 64 * 1024)).length).toBe(64 * 1024);
});

test("the body of an error that never ends is waited for no longer than it is worth", async () => {
  const dripping = answerOf(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("why")) }));
  expect(await readStart(dripping, 64 * 1024, 50)).toBe("why");
});

test("a small body comes as a whole", async () => {
  expect(await readText(answerOf(new Response("hello").body), 10)).toBe("hello");
  expect((await readBody(answerOf(null), 10)).length).toBe(0);
});

test("which addresses are this machine", () => {
  for (const url of ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9/x", "http://[::1]:3"])
    expect(isLoopbackUrl(url)).toBe(true);
  for (const url of ["http://localhost.evil", "http://128.0.0.1", "https://api.github.com", "http://0.0.0.0"])
    expect(isLoopbackUrl(url)).toBe(false);
});
