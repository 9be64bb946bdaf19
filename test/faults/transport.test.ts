/** Scenario: the way to the upstream fails: each failure is told as what it was, and the next request is served. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { cutOnce } from "../support/cut";
import { eventStream } from "../support/event-stream";
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

const behind = (odd: RawServer, more = {}) =>
  startProxy({ config: { providers: { odd: { type: "anthropic", baseUrl: odd.url, apiKey: key } } }, ...more });

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

test.each([500, 502, 503, 504, 529])("%i before the first byte is passed on, and asked once", async (status) => {
  await using own = await startProxy();
  let calls = 0;
  const answer = () => {
    calls++;
    return Response.json({ error: { message: "down", code: "internal_error" } }, { status });
  };
  own.demo.intercept("/chat/completions", answer, 5);
  const response = await own.post("/v1/chat/completions", { model: "gpt-5-mini", messages });
  expect([response.status, calls]).toEqual([status, 1]);
});

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
  const text = await cutOnce(response, /message_start/, { cut });
  expect(text).toContain("event: error\n");
  expect(text).not.toContain("message_stop");
  expect(odd.connections).toBe(1);
  expect(own.rows()[0]).toMatchObject({ error_type: expect.any(String), input_tokens: 1 });
});

test("a reset before the first event of a stream is an answer of its own, whether it overtakes the headers or not", async () => {
  await using odd = await startRaw((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\n`, () =>
      socket.resetAndDestroy(),
    );
  });
  await using own = await behind(odd);
  const response = await own.post("/odd/v1/messages", { ...ask, stream: true });
  expect([response.status, await response.text()]).toEqual([502, expect.stringContaining('"type":"error"')]);
  expect(odd.connections).toBe(1);
  expect(own.rows()[0]).toMatchObject({ http_status: 502, error_type: expect.any(String), stop_reason: null });
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
  const body = JSON.stringify({ model: "gpt-5-mini", stream: true, messages });
  const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1", () =>
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  socket.on("error", () => {});
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
  const body = JSON.stringify({ model: "gpt-5-mini", messages: order });
  const closed = Promise.withResolvers<string>();
  let answer = "";
  const socket = connect(Number(new URL(own.url).port), "127.0.0.1", () =>
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => {});
  socket.on("close", () => closed.resolve(answer));
  await until(() => own.demo.open === 1, "the upstream is asked");
  socket.end();
  await until(() => own.demo.open === 0, "the upstream's connection is closed");
  expect(await closed.promise).toBe("");
  await until(() => own.rows().length === 1, "the row is written");
  expect(own.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
});

describe("a proxy on the way", () => {
  /** The program in a process of its own: proxies are read from its environment at the start. */
  const through = async (env: Record<string, string>, check: (at: string, stderr: () => string) => Promise<void>) => {
    const { run } = await import("../support/command");
    await using command = run(["start", "--json", "--port", "0"], {
      env: { ...env, DRAGOMAN_GITHUB_TOKEN: "", GITHUB_TOKEN: "" },
    });
    const { url } = await command.ready();
    await check(url, command.stderr);
  };
  const send = (url: string) =>
    fetch(`${url}/far/v1/messages`, {
      method: "POST",
      body: JSON.stringify(ask),
      headers: { "content-type": "application/json" },
    });
  const far = { type: "anthropic", baseUrl: "https://api.far.invalid", apiKey: key };

  test.each([
    ["that is dead", undefined],
    ["that answers 407", "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"],
    ["that answers 502", "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"],
  ])("%s is 502 that names the proxy, its password in no line", async (_name, answer) => {
    await using gate = await startRaw((socket) => {
      if (answer) socket.end(answer);
      else socket.destroy();
    });
    const port = answer ? new URL(gate.url).port : "9";
    await through(
      {
        HTTPS_PROXY: `http://user:canary-password@127.0.0.1:${port}`,
        HTTP_PROXY: `http://user:canary-password@127.0.0.1:${port}`,
      },
      async (url, stderr) => {
        const put = await fetch(`${url}/api/admin/config`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ logLevel: "debug", providers: { far } }),
        });
        expect(put.status).toBe(200);
        const response = await send(url);
        const text = await response.text();
        expect(response.status).toBe(502);
        expect(text).toMatch(/proxy/i);
        expect(text + stderr()).not.toContain("canary-password");
      },
    );
  });

  test("a provider on this machine is called directly", async () => {
    await using gate = await startRaw(
      (socket) => void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"),
    );
    await using odd = await startRaw((socket) => void socket.write(whole(reply)));
    await through({ HTTPS_PROXY: gate.url, HTTP_PROXY: gate.url }, async (url) => {
      const providers = { far: { ...far, baseUrl: odd.url } };
      const put = await fetch(`${url}/api/admin/config`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ providers }),
      });
      expect(put.status).toBe(200);
      expect((await send(url)).status).toBe(200);
      expect([gate.connections, odd.connections]).toEqual([0, 1]);
    });
  });
});

test("a provider that is dead harms no one else", async () => {
  await using own = await startProxy({
    config: { providers: { dead: { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: key } } },
  });
  const dead = Array.from({ length: 20 }, () => own.post("/dead/v1/messages", ask).then(({ status }) => status));
  const good = Array.from({ length: 20 }, () =>
    own.post("/v1/chat/completions", { model: "gpt-5-mini", messages }).then(({ status }) => status),
  );
  expect(await Promise.all(good)).toEqual(Array(20).fill(200));
  expect(await Promise.all(dead)).toEqual(Array(20).fill(502));
});

test("a model list that cannot be renewed serves on, after a day too, and each failure is logged", async () => {
  let now = Date.now();
  await using own = await startProxy({ clock: { now: () => now, monotonic: () => now } });
  const models = async () => {
    const response = await fetch(`${own.url}/v1/models`);
    return [response.status, ((await response.json()) as { data: object[] }).data.length];
  };
  const ask = async () => (await own.post("/v1/chat/completions", { model: "gpt-5-mini", messages })).status;
  const known = await models();
  own.demo.intercept("/models", () => new Response("no", { status: 500 }), Number.POSITIVE_INFINITY);
  let warnings = 0;
  for (const hours of [1, 22, 25, 48]) {
    now += hours * 3600_000;
    expect([await models(), await ask()]).toEqual([known, 200]);
    await until(
      () => own.lines.filter((line) => line.includes("model list of octo-demo could not be")).length > warnings,
      "the failure is in the log again",
    );
    warnings = own.lines.filter((line) => line.includes("model list of octo-demo could not be")).length;
  }
});

test("each of many answers under way goes to who asked", async () => {
  await using own = await startProxy();
  const asked = Array.from({ length: 60 }, async (_, index) => {
    const bad = index % 3 === 0;
    const response = await own.post("/v1/chat/completions", {
      model: "gpt-5-mini",
      messages: [{ role: "user", content: bad ? "[demo: 422] x" : `Say number-${index}` }],
    });
    const text = await response.text();
    return bad ? !response.ok : response.ok && text.includes(`number-${index}`);
  });
  expect((await Promise.all(asked)).every(Boolean)).toBe(true);
});

test("200 slow senders delay no other request", async () => {
  const sockets = await Promise.all(
    Array.from(
      { length: 200 },
      () =>
        new Promise<ReturnType<typeof connect>>((resolve) => {
          const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1", () => {
            socket.write("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{");
            resolve(socket);
          });
          socket.on("error", () => {});
        }),
    ),
  );
  expect((await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
  expect((await sendRaw(proxy.url, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")).statuses).toEqual([200]);
});
