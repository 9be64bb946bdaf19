/** Streamed requests over the upstream's WebSocket: the same answers, one socket for a session, HTTP where there is none. */
import { afterAll, describe, expect, test } from "bun:test";
import { SocketPool } from "../../src/upstream/copilot/socket-pool";
import { openFrames } from "../support/frame-client";
import { type ProxyOptions, type RunningProxy, startProxy } from "../support/proxy";
import { until } from "../support/until";

const config = { responsesWebSocket: "auto" };
const start = (options: ProxyOptions = {}) => startProxy({ ...options, config: { ...config, ...options.config } });
const model = "gpt-5.3-codex";
const turn = (content: string, more: object = {}) => ({
  model,
  stream: true,
  store: false,
  input: [{ role: "user", content }],
  ...more,
});

/** The events, without what is new in each response. */
async function ask(running: RunningProxy, body: object, headers = {}) {
  const answer = await running.post("/v1/responses", body, { headers });
  const text = (await answer.text()).replaceAll("\r\n", "\n");
  const events = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, name, data]) => ({
    name,
    ...JSON.parse(data!),
  }));
  return { status: answer.status, text, events, headers: answer.headers };
}
const said = ({ events }: Awaited<ReturnType<typeof ask>>) =>
  events.map(({ name, type, delta }) => [name, type, delta].join(" ")).join("\n");
const posted = (running: RunningProxy) =>
  running.demo.journal.filter(({ path, method }) => path === "/responses" && method === "POST");

const proxy = await start();
afterAll(() => proxy[Symbol.asyncDispose]());

describe("a streamed request", () => {
  test.each(["Hello", "[demo: long 200] Hello", "[demo: crlf] Hello", "What is the weather in Oslo?"])(
    "%s has the events of the same request over HTTP",
    async (words) => {
      await using plain = await startProxy();
      const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }];
      const [overSocket, overHttp] = [
        await ask(proxy, turn(words, { tools })),
        await ask(plain, turn(words, { tools })),
      ];
      expect(said(overSocket)).toBe(said(overHttp));
      expect(overSocket.events.at(-1)).toMatchObject({ name: "response.completed", type: "response.completed" });
      expect(proxy.rows()[0]).toMatchObject({ upstream_endpoint: "ws:/responses", http_status: 200 });
      expect(plain.rows()[0]).toMatchObject({ upstream_endpoint: "/responses" });
      expect(posted(plain)[0]!.socket).toBeUndefined();
    },
  );

  test("is one message: the body without `stream`, and who asks; the handshake has the other headers", async () => {
    await ask(proxy, turn("Hello", { x_new: 7 }));
    const seen = posted(proxy).at(-1)!;
    const text = Buffer.from(seen.bytes).toString();
    expect(text).toContain('"x_new":7');
    expect(JSON.parse(text)).toMatchObject({ type: "response.create", initiator: "user" });
    expect(text).not.toContain('"stream"');
    expect(seen.headers).toMatchObject({
      "copilot-integration-id": "vscode-chat",
      "openai-intent": "conversation-agent",
    });
    expect(seen.headers["x-github-api-version"]).toBeDefined();
  });

  test("of a translated client, and a compaction, come the same way; a full answer and other models do not", async () => {
    const message = { model, max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
    await (await proxy.post("/v1/messages", { ...message, stream: true })).text();
    expect(proxy.rows()[0]!.upstream_endpoint).toBe("ws:/responses");
    await (await proxy.post("/v1/messages", message)).text();
    expect(proxy.rows()[0]!.upstream_endpoint).toBe("/responses");
    await ask(proxy, turn("Hello", { model: "claude-sonnet-4.6" }));
    expect(proxy.rows()[0]!.upstream_endpoint).toBe("/v1/messages");
  });

  test("a streamed request is not sent so unless the config says it", async () => {
    await using plain = await startProxy();
    await ask(plain, turn("Hello"));
    expect(plain.demo.sockets).toBe(0);
  });
});

describe("a session", () => {
  test("a session at the upstream's WebSocket keeps its socket, also from a client's WebSocket; another one has another", async () => {
    await using running = await start();
    for (const prompt_cache_key of ["one", "two", "one"]) await ask(running, turn("Hello", { prompt_cache_key }));
    await using client = await openFrames(running.url);
    await client.ask(turn("Hello", { prompt_cache_key: "two", stream: undefined }));
    expect(posted(running).map(({ socket }) => socket)).toEqual([1, 2, 1, 2]);
    expect(running.rows()[0]).toMatchObject({ path: "ws:/v1/responses", upstream_endpoint: "ws:/responses" });
  });

  test("a session at the upstream's WebSocket has a second socket while the first is in use", async () => {
    await using running = await start({ demo: { pace: 2 } });
    const answers = [1, 2, 3].map(() => ask(running, turn("[demo: long 50] Hello", { prompt_cache_key: "one" })));
    expect((await Promise.all(answers)).map(({ events }) => events.at(-1).type)).toEqual(
      Array(3).fill("response.completed"),
    );
    expect(running.demo.sockets).toBe(3);
  });
});

describe("an error", () => {
  test.each(["429 30", "402", "400-long", "500", "401-expired once", "first-error"])(
    "[demo: %s] is what it is over HTTP",
    async (fault) => {
      // Waits are told in seconds: one clock for both.
      const at = Date.now();
      const clocks = { clock: { now: () => at }, demo: { now: () => at } };
      await using running = await start(clocks);
      await using plain = await startProxy(clocks);
      const [overSocket, overHttp] = [
        await ask(running, turn(`[demo: ${fault}] Hello`)),
        await ask(plain, turn(`[demo: ${fault}] Hello`)),
      ];
      expect(overSocket.status).toBe(overHttp.status);
      expect(overSocket.headers.get("retry-after")).toBe(overHttp.headers.get("retry-after"));
      if (overHttp.status !== 200) expect(JSON.parse(overSocket.text)).toEqual(JSON.parse(overHttp.text));
      const [row] = running.rows();
      const [other] = plain.rows();
      expect(row).toMatchObject({ error_type: other!.error_type, error_message: other!.error_message });
      expect(JSON.parse(row!.attempts).length).toBe(JSON.parse(other!.attempts).length);
    },
  );

  test.each(["cut 5", "end 5", "bad-json", "failed", "error-event"])(
    "[demo: %s] ends the stream with an error",
    async (fault) => {
      await using running = await start();
      const { events } = await ask(running, turn(`[demo: ${fault}] Hello`));
      expect(events.at(-1).type).toBe("response.failed");
      expect(posted(running)).toHaveLength(1);
      // The next request has a socket again.
      expect((await ask(running, turn("Hello"))).events.at(-1).type).toBe("response.completed");
      expect(posted(running).at(-1)!.socket).toBeDefined();
    },
  );
});

describe("without a socket", () => {
  test("the request is sent over HTTP, and the next ones at once", async () => {
    await using running = await start();
    running.demo.takesSockets = false;
    for (let round = 0; round < 3; round++) {
      const { events } = await ask(running, turn("Hello"));
      expect(events.at(-1).type).toBe("response.completed");
    }
    expect(posted(running).map(({ socket }) => socket)).toEqual([undefined, undefined, undefined]);
    expect(running.rows()[0]).toMatchObject({ upstream_endpoint: "/responses" });
    expect(JSON.parse(running.rows()[0]!.attempts)).toHaveLength(1);
  });

  test("that had served before and breaks before any event, the request is sent again over HTTP, as an agent's", async () => {
    await using running = await start();
    await ask(running, turn("Hello"));
    const { events } = await ask(running, turn("[demo: reset once] Hello"));
    expect(events.at(-1).type).toBe("response.completed");
    expect(posted(running).map(({ socket, headers }) => [socket, headers["x-initiator"]])).toEqual([
      [1, "user"],
      [1, "user"],
      [undefined, "agent"],
    ]);
    expect(JSON.parse(running.rows()[0]!.attempts)).toMatchObject([{ error: "upstream" }, { status: 200 }]);
    // Nothing is wrong with the address.
    await ask(running, turn("Hello"));
    expect(posted(running).at(-1)!.socket).toBe(2);
  });

  test("that is new and breaks before any event, the request is not sent again, because it may have been processed", async () => {
    await using running = await start();
    const { status, text } = await ask(running, turn("[demo: reset once] Hello"));
    expect([status, JSON.parse(text).error.code]).toEqual([502, "upstream_disconnected"]);
    expect(posted(running)).toHaveLength(1);
    // The next request has no such socket.
    expect((await ask(running, turn("Hello"))).status).toBe(200);
    expect(posted(running).at(-1)!.socket).toBeUndefined();
  });

  test.each(["status", "nested"] as const)(
    "that takes no more requests (%s), the request is sent on a new one, and then over HTTP",
    async (socketErrors) => {
      await using running = await start();
      running.demo.socketErrors = socketErrors;
      await ask(running, turn("Hello"));
      expect((await ask(running, turn("[demo: 400-sockets once] Hello"))).events.at(-1).type).toBe(
        "response.completed",
      );
      const sent = () => posted(running).map(({ socket, headers }) => [socket, headers["x-initiator"]]);
      expect(sent().slice(1)).toEqual([
        [1, "user"],
        [2, "agent"],
      ]);
      expect(JSON.parse(running.rows()[0]!.attempts)).toHaveLength(2);

      running.demo.intercept("/responses", ({ socket }) => (socket ? spent() : undefined), 3);
      expect((await ask(running, turn("Hello"))).events.at(-1).type).toBe("response.completed");
      expect(sent().slice(3)).toEqual([
        [2, "user"],
        [3, "agent"],
        [undefined, "agent"],
      ]);
    },
  );
});

const spent = () =>
  Response.json({ error: { code: "websocket_connection_limit_reached", message: "Too old." } }, { status: 400 });

describe("an error frame without a status", () => {
  test.each(
    "402-spend 402 402-free 429-session 429-model 429-global 400-bad 400-long 400-window 400-model 400-integrator 400-no-endpoints 400-encrypted 401-session 500 429-overloaded".split(
      " ",
    ),
  )("[demo: %s] is the answer that the same error is over HTTP, at each account in turn", async (fault) => {
    const accounts = ["octo-demo", "work-demo"];
    await using nested = await start({ accounts });
    nested.demo.socketErrors = "nested";
    await using stated = await start({ accounts });
    await using plain = await startProxy({ accounts });
    const results = await Promise.all(
      [nested, stated, plain].map(async (running) => {
        const { status, text } = await ask(running, turn(`[demo: ${fault}] Hello`));
        const { error } = JSON.parse(text);
        const states = running.app.accounts.map(({ state }) => state.name);
        const tries = JSON.parse(running.rows()[0]!.attempts).map((each: { status: number }) => each.status);
        return { status, code: error.code, states, calls: posted(running).length, tries };
      }),
    );
    expect(results[0]).toEqual(results[2]!);
    expect(results[1]).toEqual(results[2]!);
  });

  test("[demo: 401-session once] is served after a new session was fetched, on a new socket", async () => {
    await using running = await start();
    running.demo.socketErrors = "nested";
    expect((await ask(running, turn("[demo: 401-session once] Hello"))).events.at(-1).type).toBe("response.completed");
    expect(posted(running).map(({ socket }) => socket)).toEqual([1, 2]);
    expect(running.demo.journal.filter(({ path }) => path === "/copilot_internal/v2/token")).toHaveLength(2);
    // In direct mode there is no other token, but another socket.
    await using direct = await start({ accounts: ["plus-demo"] });
    direct.demo.socketErrors = "nested";
    expect((await ask(direct, turn("[demo: 401-session once] Hello"))).events.at(-1).type).toBe("response.completed");
  });

  test("a wait in its text is the client's retry-after", async () => {
    await using running = await start();
    running.demo.socketErrors = "nested";
    const { status, headers } = await ask(running, turn("[demo: 429-session] Hello"));
    expect([status, headers.get("retry-after")]).toEqual([429, "2733"]);
  });
});

test("a client that leaves ends the upstream's work", async () => {
  await using running = await start({ demo: { pace: 20 } });
  const controller = new AbortController();
  const answer = await running.post("/v1/responses", turn("[demo: long 500] Hello"), { signal: controller.signal });
  const reader = answer.body!.getReader();
  await reader.read();
  expect(running.demo.open).toBe(1);
  controller.abort();
  await until(() => running.demo.open === 0, "the upstream's connection is closed");
  await until(() => running.rows().length === 1, "the row is written");
  expect(running.rows()[0]).toMatchObject({ http_status: 499 });
});

test("a silent upstream is given up at the limit", async () => {
  await using running = await start();
  running.app.limits.stream.headers = 200;
  const { status, text } = await ask(running, turn("[demo: slow-headers 20] Hello"));
  expect([status, text]).toEqual([504, expect.stringContaining("did not answer within 0.2 s")]);
});

test("the quota of the last event is learned", async () => {
  await using running = await start();
  const [account] = running.app.accounts;
  const before = await account!.quota();
  await ask(running, turn("Hello"));
  expect(account!.knownQuota!.remaining).toBe(before.remaining! - 1);
});

describe("the pool", () => {
  const open = async (...given: ConstructorParameters<typeof SocketPool>) => {
    const pool = new SocketPool(...given);
    const demo = proxy.demo.url;
    const token = (await proxy.app.accounts[0]!.session()).token;
    const address = (session: string) => ({
      url: `${demo}/responses`,
      headers: {
        authorization: `Bearer ${token}`,
        "editor-version": "test/1",
        "copilot-integration-id": "vscode-chat",
      },
      session,
    });
    return { pool, take: async (session: string) => (await pool.take(address(session), 1000))! };
  };

  test("the pool of sockets closes a socket that waits too long", async () => {
    const { pool, take } = await open({ idleMs: 1 });
    const first = await take("a");
    pool.give(first);
    await until(async () => {
      const next = await take("a");
      pool.give(next);
      return next !== first;
    }, "another socket is opened");
    pool.close();
  });

  test("the pool of sockets does not use a socket that is too old", async () => {
    const { pool, take } = await open({ ageMs: 0 });
    const first = await take("a");
    pool.give(first);
    expect(await take("a")).not.toBe(first);
    pool.close();
  });

  test("the pool of sockets does not use a socket that waited while the machine slept", async () => {
    let wall = 1_000;
    const { pool, take } = await open({}, () => wall);
    const first = await take("a");
    pool.give(first);
    expect(await take("a")).toBe(first);
    pool.give(first);
    wall += 36_000_000;
    expect(await take("a")).not.toBe(first);
    pool.close();
  });

  test("the pool of sockets closes the one that has waited longest where too many wait", async () => {
    const { pool, take } = await open({ idle: 2 });
    const sockets = [await take("a"), await take("b"), await take("c")];
    for (const socket of sockets) pool.give(socket);
    expect(await take("b")).toBe(sockets[1]!);
    expect(await take("c")).toBe(sockets[2]!);
    expect(await take("a")).not.toBe(sockets[0]!);
    pool.close();
  });
});
