/** Scenario: the way to the upstream fails: each failure is told as what it was, and the next request is served. */
import { afterAll, expect, test } from "bun:test";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { run } from "../support/command";
import { cutOnce } from "../support/cut";
import { eventStream } from "../support/event-stream";
import { postJson } from "../support/post-json";
import { startProxy } from "../support/proxy";
import { type RawServer, sendRaw, startRaw } from "../support/raw-socket";
import { until, untilStill } from "../support/until";

const messages = [{ role: "user", content: "Hello" }];
const ask = { model: "m", max_tokens: 9, messages };
const key = "key-of-the-provider";
const reply =
  '{"type":"message","id":"1","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}';
const whole = (body: string, more = "") =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;

const behind = (odd: RawServer) =>
  startProxy({ config: { providers: { odd: { type: "anthropic", baseUrl: odd.url, apiKey: key } } } });

/** A client that has sent this much of a request with a body of `length` bytes. */
function sending(url: string, text: string, length = text.length): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () =>
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n${text}`),
  );
  return socket.on("error", () => {});
}

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

test("a reset at once on a connection that was kept is met on a fresh one; any other is not asked again", async () => {
  let served = 0;
  const seen = new Map<object, number>();
  await using odd = await startRaw((socket) => {
    const turn = (seen.get(socket) ?? 0) + 1;
    seen.set(socket, turn);
    if (turn > 1) return void socket.resetAndDestroy();
    served++;
    socket.write(whole(reply));
  });
  // By name: whether a connection to a bare address was kept cannot be known.
  const named = { ...odd, url: odd.url.replace("127.0.0.1", "localhost") };
  await using own = await behind(named);
  for (let turn = 0; turn < 4; turn++) expect((await own.post("/odd/v1/messages", ask)).status).toBe(200);
  expect(served).toBe(4);
  expect(own.rows().map(({ attempts }) => JSON.parse(attempts).length)).toEqual([2, 1, 2, 1]);

  for (const delay of [0, 400]) {
    let asked = 0;
    await using broken = await startRaw((socket) => {
      asked++;
      setTimeout(() => socket.resetAndDestroy(), delay);
    });
    await using other = await behind(broken);
    const response = await other.post("/odd/v1/messages", ask);
    expect([response.status, asked]).toEqual([502, 1]);
    expect(other.rows()[0]).toMatchObject({ http_status: 502, error_type: "upstream_unreachable" });
  }
});

test("a kept connection that the upstream closes between requests causes no error", async () => {
  await using odd = await startRaw((socket) => {
    socket.write(whole(reply));
  });
  await using own = await behind(odd);
  for (let turn = 1; turn <= 6; turn++) {
    expect((await own.post("/odd/v1/messages", ask)).status).toBe(200);
    odd.end();
    // Ours is closed too once theirs was seen to be.
    await until(() => odd.open === 0, "our side is closed too");
    expect(odd.connections).toBe(turn);
  }
});

const started =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n';

test.each([
  ["a reset", "transfer-encoding: chunked\r\n", `${started.length.toString(16)}\r\n${started}\r\n`, "reset"],
  ["an end in chunks", "transfer-encoding: chunked\r\n", `${started.length.toString(16)}\r\n${started}\r\n`, "end"],
  ["an end by closing", "connection: close\r\n", started, "end"],
  ["a length that is not kept", `content-length: ${started.length + 100}\r\n`, started, "end"],
] as const)("%s in the middle of a stream is an error event, and the row says so", async (_name, header, body, how) => {
  let serving: Socket | undefined;
  await using odd = await startRaw((socket) => {
    serving = socket;
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${header}\r\n${body}`);
  });
  await using own = await behind(odd);
  const response = await own.post("/odd/v1/messages", { ...ask, stream: true });
  // A reset may overtake what was sent before it: it comes once that is known to be here.
  const cut = () => (how === "reset" ? serving!.resetAndDestroy() : serving!.end());
  const told = await cutOnce(response, /message_start/, { cut });
  expect(told).toContain("event: error\n");
  expect(told).not.toContain("message_stop");
  expect(odd.connections).toBe(1);
  expect(own.rows()[0]).toMatchObject({ error_type: expect.any(String), input_tokens: 1 });
});

test("a client that does not read keeps us from reading, and our memory flat", async () => {
  const piece = new TextEncoder().encode(`: ${"x".repeat(65_534)}\n\n`);
  let sent = 0;
  proxy.demo.intercept("/chat/completions", () =>
    eventStream(
      new ReadableStream({
        async pull(controller) {
          if (sent > 100 * 1024 * 1024) return controller.close();
          controller.enqueue(piece);
          sent += piece.length;
          await Bun.sleep(0);
        },
      }),
    ),
  );
  const socket = sending(proxy.url, JSON.stringify({ model: "gpt-5-mini", stream: true, messages }));
  socket.pause();
  await until(() => sent > 0, "the upstream sends");
  await untilStill(() => sent);
  expect(sent).toBeLessThan(40 * 1024 * 1024);
  socket.destroy();
  await until(() => proxy.demo.open === 0, "the upstream's connection is closed");
});

test("a client that closes its half is let go, as if it had left, and so is the upstream", async () => {
  await using own = await startProxy();
  await (await fetch(`${own.url}/v1/models`)).text();
  const order = [{ role: "user", content: "[demo: slow-headers 20] Hello" }];
  const socket = sending(own.url, JSON.stringify({ model: "gpt-5-mini", messages: order }));
  const answer = text(socket);
  await until(() => own.demo.open === 1, "the upstream is asked");
  socket.end();
  await until(() => own.demo.open === 0, "the upstream's connection is closed");
  expect(await answer).toBe("");
  await until(() => own.rows().length === 1, "the row is written");
  expect(own.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
});

test("a provider on this machine is called directly", async () => {
  await using gate = await startRaw(
    (socket) => void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"),
  );
  await using odd = await startRaw((socket) => void socket.write(whole(reply)));
  // Proxies are read at the start of a process.
  await using command = run(["start", "--json", "--port", "0"], {
    env: { HTTPS_PROXY: gate.url, HTTP_PROXY: gate.url },
  });
  const { url } = await command.ready();
  const post = async (path: string, body: object) => (await postJson(url + path, body)).status;
  const far = { type: "anthropic", baseUrl: odd.url, apiKey: key };
  expect(await post("/api/admin/config", { providers: { far } })).toBe(200);
  expect([await post("/far/v1/messages", ask), gate.connections, odd.connections]).toEqual([200, 0, 1]);
});

test("each of many answers under way goes to who asked", async () => {
  await using own = await startProxy();
  const asked = Array.from({ length: 60 }, async (_, index) => {
    const bad = index % 3 === 0;
    const response = await own.post("/v1/chat/completions", {
      model: "gpt-5-mini",
      messages: [{ role: "user", content: bad ? "[demo: 422] x" : `Say number-${index}` }],
    });
    const told = await response.text();
    return bad ? !response.ok : response.ok && told.includes(`number-${index}`);
  });
  expect((await Promise.all(asked)).every(Boolean)).toBe(true);
});

test("200 slow senders delay no other request", async () => {
  const sockets = Array.from({ length: 200 }, () => sending(proxy.url, "{", 1000));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  expect((await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
  expect((await sendRaw(proxy.url, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")).statuses).toEqual([200]);
});
