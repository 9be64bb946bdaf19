/** Scenario: Responses over a WebSocket, read by a client that is as strict as Codex'. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { eventStream, eventsIn } from "../support/event-stream";
import { clientFrame, openFrames, type SocketEvent } from "../support/frame-client";
import { startProxy } from "../support/proxy";
import { until, untilStill } from "../support/until";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const turn = (text: string, model = "gpt-5.3-codex") => ({ model, store: false, input: [user(text)] });
const textOf = (events: SocketEvent[]) =>
  events.flatMap(({ type, delta }) => (type === "response.output_text.delta" ? [delta] : [])).join("");
const responseOf = (events: SocketEvent[]) => events.at(-1)!.response as { id: string; output: unknown[] };
const errorOf = (events: SocketEvent[]) =>
  events.at(-1) as unknown as { status: number; error: { code: string; message: string }; headers: object };
const sent = (running = proxy) => running.demo.journal.at(-1)!.body as { input: unknown[] } & Record<string, unknown>;

describe("a request", () => {
  test.each(["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-2.5-pro"])(
    "to %s has the events of the same request over HTTP",
    async (model) => {
      await using client = await openFrames(proxy.url);
      const before = proxy.rows().length;
      const events = await client.ask(turn("Hello", model));
      const overHttp = await (await proxy.post("/v1/responses", { ...turn("Hello", model), stream: true })).text();
      const types = eventsIn(overHttp).map(({ type }) => type);
      expect(events.map(({ type }) => type)).toEqual(types);
      expect(textOf(events)).not.toBe("");
      const rows = proxy.rows();
      expect(rows).toHaveLength(before + 2);
      expect(rows[1]).toMatchObject({ path: "ws:/v1/responses", http_status: 200, stream: 1, client_model: model });
      expect(proxy.lines.filter((line) => line.includes("ws:/v1/responses") && line.includes(model))).toHaveLength(1);
    },
  );

  test("a request at the socket gets the bytes that the client sent", async () => {
    await using client = await openFrames(proxy.url, { path: "/responses" });
    const text = `{"type":"response.create","model":"gpt-5.3-codex","store":false,"include":["reasoning.encrypted_content"],"x_new":1.0e0,"input":[{"role":"user","content":"Zehn ü 🎉"}]}`;
    client.send(clientFrame(text));
    for (let event = await client.next(); event?.type !== "response.completed"; event = await client.next())
      expect(event).toBeDefined();
    const seen = Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString();
    expect(seen).toContain(`"x_new":1.0e0,"input":[{"role":"user","content":"Zehn ü 🎉"}]`);
    expect(sent()).not.toHaveProperty("type");
  });

  test("a request at the socket is one of several that are served in their order", async () => {
    await using client = await openFrames(proxy.url);
    for (const word of ["one", "two", "three"])
      client.send({ type: "response.create", ...turn(`[demo: long 20] ${word}`) });
    const asked: string[] = [];
    for (let ends = 0; ends < 3; ) {
      const event = await client.next();
      if (event?.type === "response.completed") ends++;
      if (event?.type === "response.created") asked.push(JSON.stringify(sent().input));
    }
    expect(asked.map((input) => /one|two|three/.exec(input)?.[0])).toEqual(["one", "two", "three"]);
  });

  test("a request at the socket is refused without a text frame, and the socket ends", async () => {
    await using client = await openFrames(proxy.url);
    client.send(clientFrame(Buffer.from([1, 2, 3]), 2));
    expect(await client.next()).toMatchObject({ type: "error", status: 400, error: { type: "invalid_request_error" } });
    expect(await client.next()).toBeUndefined();
    expect(await client.closed).toEqual({ code: 1003, reason: "text only" });
  });

  test.each([
    [{ type: "response.cancel" }, "type"],
    [{ type: "response.create", stream_id: "a", ...turn("Hi") }, "stream_id"],
    [{ type: "response.create", model: "gpt-5.3-codex", input: [] }, "input"],
    [clientFrame("{nonsense"), null],
  ])("%j is an error that names the field, and the socket stays", async (message, param) => {
    await using client = await openFrames(proxy.url);
    client.send(message);
    expect(await client.next()).toMatchObject({ type: "error", status: 400, error: { param } });
    expect(textOf(await client.ask(turn("Hello")))).not.toBe("");
  });

  test("a request at the socket may come in pieces", async () => {
    await using client = await openFrames(proxy.url);
    const text = JSON.stringify({ type: "response.create", ...turn("Hello") });
    client.send(clientFrame(text.slice(0, 30), 1, false));
    client.send(clientFrame(text.slice(30), 0));
    expect((await client.next())?.type).toBe("response.created");
  });
});

describe("the conversation of a socket", () => {
  test("the conversation of a socket is continued with the new items only, after a warm-up too", async () => {
    await using client = await openFrames(proxy.url);
    const asked = proxy.demo.journal.length;
    const warm = await client.ask({ ...turn("My name is Ada."), generate: false });
    expect(warm.map(({ type }) => type)).toEqual(["response.created", "response.in_progress", "response.completed"]);
    expect(proxy.demo.journal).toHaveLength(asked);
    expect(responseOf(warm).output).toEqual([]);

    const first = await client.ask({ ...turn(""), input: [], previous_response_id: responseOf(warm).id });
    expect(sent().input).toEqual([user("My name is Ada.")]);
    expect(sent()).not.toHaveProperty("generate");
    client.send({ type: "response.processed", response_id: responseOf(first).id });

    const second = await client.ask({ ...turn("And yours?"), previous_response_id: responseOf(first).id });
    expect(sent().input).toEqual([
      user("My name is Ada."),
      expect.objectContaining({ type: "message", role: "assistant" }),
      user("And yours?"),
    ]);
    expect(sent()).not.toHaveProperty("previous_response_id");
    const third = await client.ask({ ...turn(""), input: "Bye", previous_response_id: responseOf(second).id });
    expect(sent().input).toHaveLength(5);
    expect(third.at(-1)!.type).toBe("response.completed");
    const continued = { fixups: expect.stringContaining('"continued"') };
    expect(proxy.rows().slice(0, 4)).toMatchObject([
      continued,
      continued,
      continued,
      { input_tokens: 0, output_tokens: 0, http_status: 200 },
    ]);
  });

  test.each(["gpt-5.3-codex", "claude-sonnet-4.6"])(
    "the conversation of a socket has the calls and the reasoning of %s",
    async (model) => {
      await using client = await openFrames(proxy.url);
      const tools = [
        {
          type: "function",
          name: "get_weather",
          parameters: { type: "object", properties: { city: { type: "string" } } },
        },
      ];
      const more = { tools, reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] };
      const first = await client.ask({ ...turn("What is the weather in Oslo?", model), ...more });
      const { id, output } = responseOf(first);
      const call = output.find((item) => (item as { type: string }).type === "function_call") as { call_id: string };
      const result = { type: "function_call_output", call_id: call.call_id, output: "Sunny" };
      const second = await client.ask({ model, store: false, ...more, input: [result], previous_response_id: id });
      expect(second.at(-1)!.type).toBe("response.completed");
      const [row] = proxy.rows();
      expect(row).toMatchObject({ http_status: 200, initiator: "agent" });
    },
  );

  test("the conversation of a socket is not known to another socket, nor under another id", async () => {
    await using client = await openFrames(proxy.url);
    const { id } = responseOf(await client.ask(turn("Hello")));
    await using other = await openFrames(proxy.url);
    for (const [socket, name] of [
      [other, id],
      [client, "resp_unknown"],
    ] as const) {
      const events = await socket.ask({ ...turn("Hello"), previous_response_id: name });
      expect(errorOf(events)).toMatchObject({ status: 400, error: { code: "previous_response_not_found" } });
    }
    // A request that failed leaves it as it is.
    const events = await client.ask({ ...turn("And?"), previous_response_id: id });
    expect(events.at(-1)!.type).toBe("response.completed");
  });
});

describe("an error", () => {
  test("an error at the socket has the status, the body and the headers of the answer over HTTP", async () => {
    await using running = await startProxy();
    await using client = await openFrames(running.url);
    const events = await client.ask(turn("[demo: 429 30] Hello"));
    expect(events).toHaveLength(1);
    expect(errorOf(events)).toMatchObject({
      status: 429,
      headers: { "retry-after": "30", "x-request-id": expect.any(String) },
    });
    expect(running.rows()[0]).toMatchObject({ http_status: 429 });
    expect(errorOf(await client.ask(turn("Hello", "no-such-model")))).toMatchObject({
      status: 404,
      error: { code: "model_not_found" },
    });
  });

  test("an error of an upstream that breaks off is the last event, and the socket stays", async () => {
    await using client = await openFrames(proxy.url);
    // A reset may overtake what was sent before it, so it waits until the client has the first event.
    const begun = Promise.withResolvers<void>();
    proxy.demo.intercept("/responses", () => {
      const response = { id: "resp_1", object: "response", status: "in_progress", model: "gpt-5.3-codex", output: [] };
      const created = JSON.stringify({ type: "response.created", sequence_number: 0, response });
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(`event: response.created\ndata: ${created}\n\n`),
        async pull(controller) {
          await begun.promise;
          controller.error(new Error("cut"));
        },
      });
      return eventStream(body);
    });
    client.send({ type: "response.create", ...turn("Hello") });
    expect((await client.next())!.type).toBe("response.created");
    begun.resolve();
    expect(await client.next()).toMatchObject({
      type: "response.failed",
      response: { error: { code: "upstream_disconnected" } },
    });
    expect((await client.ask(turn("Hello"))).at(-1)!.type).toBe("response.completed");
  });
});

test("a hang-up ends the upstream's work", async () => {
  await using running = await startProxy({ demo: { pace: 20 } });
  const client = await openFrames(running.url);
  client.send({ type: "response.create", ...turn("[demo: long 500] Hello") });
  await client.next();
  expect(running.demo.open).toBe(1);
  client.socket.destroy();
  await until(() => running.demo.open === 0, "the upstream's connection is closed");
  await until(() => running.rows().length === 1, "the row is written");
  expect(running.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
  expect(running.app.inFlight.count).toBe(0);
});

test.each([
  ["without end", Array<number>(12).fill(0)],
  ["of more than 32 MiB", [0, 2 ** 24, 2 ** 24]],
])("a socket that is sent requests %s, while one is answered, is ended", async (_, paddings) => {
  await using running = await startProxy({ demo: { pace: 20 } });
  await using client = await openFrames(running.url);
  for (const padding of paddings)
    client.send({ type: "response.create", ...turn(`[demo: long 100] ${"x".repeat(padding)}`) });
  let last: SocketEvent | undefined;
  for (let event = await client.next(); event; event = await client.next()) last = event;
  expect(last).toMatchObject({ type: "error", status: 429 });
  expect(await client.closed).toMatchObject({ code: 1008 });
  await until(() => running.demo.open === 0, "the upstream's connection is closed");
});

test("a silent upstream is bridged by pings, and then by events", async () => {
  await using running = await startProxy();
  running.app.limits.keepAlive = 40;
  await using client = await openFrames(running.url);
  running.demo.intercept("/responses", async () => {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(": waiting\n\n"),
      async pull(controller) {
        await until(() => client.pings > 1, "the client is pinged twice");
        controller.error(new Error("cut"));
      },
    });
    return eventStream(body);
  });
  expect(errorOf(await client.ask(turn("Hello")))).toMatchObject({
    status: 502,
    error: { code: "upstream_disconnected" },
  });
  const events = await client.ask(turn("[demo: silence 0.3] Hello"));
  expect(events.filter(({ type }) => type === "response.in_progress").length).toBeGreaterThan(2);
});

test("a client that does not read holds up the upstream, not the memory", async () => {
  await using running = await startProxy();
  await using client = await openFrames(running.url);
  const big = "x".repeat(1024 * 1024);
  let pulled = 0;
  running.demo.intercept("/responses", () => {
    const frame = Buffer.from(
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_1","delta":"${big}"}\n\n`,
    );
    return eventStream(
      new ReadableStream({
        pull(controller) {
          if (pulled === 100) return controller.close();
          pulled++;
          controller.enqueue(frame);
        },
      }),
    );
  });
  client.socket.pause();
  client.send({ type: "response.create", ...turn("Hello") });
  await until(() => pulled > 2, "the upstream sends");
  // It stands still once all buffers are full.
  await untilStill(() => pulled);
  expect(pulled).toBeLessThan(60);
  client.socket.resume();
  let deltas = 0;
  for (let event = await client.next(); event?.type.endsWith("delta"); event = await client.next()) deltas++;
  expect(deltas).toBe(100);
});

describe("the handshake", () => {
  test("declines compression, and is checked like any request", async () => {
    await using client = await openFrames(proxy.url);
    expect(client.status).toBe(101);
    expect(client.head).not.toMatch(/sec-websocket-extensions/i);
    const origin = (value: string) => openFrames(proxy.url, { headers: { origin: value } });
    await using evil = await origin("https://evil.example");
    await using own = await origin(proxy.url);
    await using rebound = await openFrames(proxy.url, { headers: { host: "evil.example" } });
    expect([evil.status, own.status, rebound.status]).toEqual([403, 101, 403]);
  });

  test("the socket's handshake needs the client key, and a revoked key is refused with the next message", async () => {
    await using guarded = await startProxy({ config: { auth: { apiKeys: ["key-one", "key-two"] } } });
    await using without = await openFrames(guarded.url);
    expect(without.status).toBe(401);
    await using client = await openFrames(guarded.url, { headers: { authorization: "Bearer key-one" } });
    expect((await client.ask(turn("Hello"))).at(-1)!.type).toBe("response.completed");
    await guarded.app.config.change({ auth: { apiKeys: ["key-two"] } });
    expect(errorOf(await client.ask(turn("Hello")))).toMatchObject({ status: 401, error: { code: "invalid_api_key" } });
    expect(await client.next()).toBeUndefined();
    expect(await client.closed).toMatchObject({ code: 1008 });
  });

  test("the socket's handshake stays open after a model that the key may not use: the next request may name another one", async () => {
    const apiKeys = [{ name: "anna", key: "key-of-anna", models: ["gpt-*"] }];
    await using guarded = await startProxy({ config: { auth: { apiKeys } } });
    await using client = await openFrames(guarded.url, { headers: { authorization: "Bearer key-of-anna" } });
    const refused = errorOf(await client.ask(turn("Hello", "claude-opus-4.6")));
    expect(refused).toMatchObject({ status: 400, error: { code: "model_not_allowed" } });
    expect((await client.ask(turn("Hello"))).at(-1)!.type).toBe("response.completed");
  });

  test("the socket's handshake is declined with 426 where no socket can be opened, so that clients use POST", async () => {
    await using running = await startProxy();
    running.app.sockets.drain();
    await using client = await openFrames(running.url);
    expect(client.status).toBe(426);
    // As it comes through a reverse proxy that does not know WebSockets.
    const lost = await fetch(`${proxy.url}/v1/responses`, {
      headers: { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
    });
    expect(lost.status).toBe(426);
    expect((await fetch(`${proxy.url}/v1/responses`)).status).toBe(405);
  });
});

describe("the end of a socket", () => {
  test("the end of a socket comes at its age, after the answer", async () => {
    await using running = await startProxy({ demo: { pace: 5 } });
    running.app.limits.socketAge = 150;
    await using busy = await openFrames(running.url);
    await using idle = await openFrames(running.url);
    const events = await busy.ask(turn("[demo: long 60] Hello"));
    expect(events.at(-1)!.type).toBe("response.completed");
    for (const client of [busy, idle]) {
      expect(await client.next()).toBeUndefined();
      expect(await client.closed).toEqual({ code: 1001, reason: "going away" });
    }
  });

  test("the end of a socket comes with a shutdown: what runs is finished, what waits is told to connect again", async () => {
    await using running = await startProxy({ demo: { pace: 5 } });
    await using busy = await openFrames(running.url);
    await using idle = await openFrames(running.url);
    busy.send({ type: "response.create", ...turn("[demo: long 60] Hello") });
    await busy.next();
    busy.send({ type: "response.create", ...turn("Later") });
    const drained = running.drain();
    expect(await idle.next()).toBeUndefined();
    expect(await idle.closed).toEqual({ code: 1012, reason: "service restart" });
    const types: string[] = [];
    for (let event = await busy.next(); event; event = await busy.next()) types.push(event.type);
    expect(types.at(-2)).toBe("response.completed");
    expect(types.at(-1)).toBe("error");
    expect(await busy.closed).toMatchObject({ code: 1012 });
    await drained;
  });

  test("a process that stops at once says so in the event", async () => {
    await using running = await startProxy({ demo: { pace: 5 } });
    await using client = await openFrames(running.url);
    client.send({ type: "response.create", ...turn("[demo: long 500] Hello") });
    await client.next();
    void running.drain();
    running.app.close();
    let last: SocketEvent | undefined;
    for (let event = await client.next(); event; event = await client.next()) last = event;
    expect(last).toMatchObject({ type: "response.failed" });
    expect(await client.closed).toMatchObject({ code: 1012 });
  });
});

test("OpenAI's own client gets a response and its continuation", async () => {
  const openai = new OpenAI({ apiKey: "none", baseURL: `${proxy.url}/v1` });
  const socket = new ResponsesWS(openai);
  const events: { type: string; response?: { id: string } }[] = [];
  const done = async () => {
    await until(() => events.at(-1)?.type === "response.completed", "the reply is complete");
    return events.splice(0).at(-1)!.response!.id;
  };
  socket.on("event", (event) => void events.push(event as never));
  socket.send({ type: "response.create", ...turn("Hello") } as never);
  const id = await done();
  socket.send({ type: "response.create", ...turn("And?"), previous_response_id: id } as never);
  expect(await done()).not.toBe(id);
  expect(sent().input).toHaveLength(3);
  socket.close();
});
