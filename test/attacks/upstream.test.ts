/** An upstream that means harm, or has lost its mind: the client's stream ends truthfully, and we stay as we were. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readSse } from "../../src/net/sse";
import { run } from "../../src/net/stream";
import { type RunningProxy, startProxy, until } from "../support/proxy";
import { startRaw } from "../support/raw";

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy();
});
afterAll(() => proxy[Symbol.asyncDispose]());

const messages = [{ role: "user", content: "Say Grüße, 世界 🎈" }];
const clients = [
  { path: "/v1/chat/completions", endpoint: "/chat/completions", body: { model: "gpt-5-mini", messages } },
  { path: "/v1/responses", endpoint: "/responses", body: { model: "gpt-5.3-codex", input: "Say Grüße, 世界 🎈" } },
  { path: "/v1/messages", endpoint: "/v1/messages", body: { model: "claude-sonnet-4.6", max_tokens: 99, messages } },
  // Through the hub.
  { path: "/v1/messages", endpoint: "/responses", body: { model: "gpt-5.3-codex", max_tokens: 99, messages } },
  { path: "/v1/responses", endpoint: "/v1/messages", body: { model: "claude-sonnet-4.6", input: "Hello" } },
] as const;
type Client = (typeof clients)[number];

const encode = (text: string) => new TextEncoder().encode(text);
const sse = { "content-type": "text/event-stream" };
const streamed = (body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>) =>
  new Response(body, { headers: sse });

/** The stream the client gets when the upstream answers with this. */
async function streamOf(
  client: Client,
  answer: () => Response | Promise<Response>,
): Promise<{ status: number; text: string }> {
  proxy.demo.intercept(client.endpoint, answer);
  const response = await proxy.post(client.path, { ...client.body, stream: true });
  return { status: response.status, text: await response.text() };
}

/** What the upstream would have streamed by itself. */
async function natural(client: Client): Promise<string> {
  let copy: Promise<string> = Promise.resolve("");
  proxy.demo.intercept(client.endpoint, async (seen, request) => {
    const own = await fetch(proxy.demo.url + seen.path, {
      method: "POST",
      headers: request.headers,
      body: Buffer.from(seen.bytes),
    });
    copy = own.text();
    return streamed(await copy);
  });
  await (await proxy.post(client.path, { ...client.body, stream: true })).text();
  return copy;
}

const framesOf = (text: string) =>
  run(readSse, [encode(text)]).flatMap(({ event, data }) => (data === undefined ? [] : [{ event, data }]));

/** It ended as an error in its own dialect, and nothing in it looks complete. */
function expectTruthful(client: Client, { status, text }: { status: number; text: string }): void {
  const shape = client.path === "/v1/messages" ? { type: "error" } : {};
  if (status !== 200) {
    expect(status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ ...shape, error: { message: expect.any(String) } });
    return;
  }
  const frames = framesOf(text);
  const last = frames.at(-1)!;
  if (client.path === "/v1/chat/completions") {
    expect(JSON.parse(last.data)).toMatchObject({ error: { message: expect.any(String) } });
    expect(text).not.toContain("[DONE]");
  } else if (client.path === "/v1/responses") {
    expect(JSON.parse(last.data).type).toMatch(/^(?:response\.failed|error)$/);
    expect(text).not.toContain('"response.completed"');
  } else {
    expect(JSON.parse(last.data).type).toBe("error");
    expect(text).not.toContain('"message_stop"');
  }
}

/** Text blocks of a stream, whatever its dialect. */
const wordsOf = (text: string) =>
  [...text.matchAll(/"(?:content|delta|text)":"((?:[^"\\]|\\.)*)"/g)].map(([, word]) => word).join("");

function endless(piece: Uint8Array) {
  let sent = 0;
  let cancelled = false;
  const response = streamed(
    new ReadableStream({
      async pull(controller) {
        controller.enqueue(piece);
        sent += piece.length;
        await Bun.sleep(0);
      },
      cancel() {
        cancelled = true;
      },
    }),
  );
  return { response, sent: () => sent, cancelled: () => cancelled };
}

describe.each(clients)("$path from $endpoint", (client) => {
  test.each([
    ["SS01: a line without an end", "data: ", "x"],
    ["SS02: data lines without a blank one", "", "data: x\n"],
    ["SS02: data lines that end in carriage returns", "", "data:\r"],
  ])(
    "%s is cut at 16 MiB",
    async (_name, first, again) => {
      const { response, sent, cancelled } = endless(encode(again.repeat(Math.ceil(262144 / again.length))));
      let begun = false;
      const body = response.body!.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            if (!begun && first) controller.enqueue(encode(first));
            begun = true;
            controller.enqueue(chunk);
          },
        }),
      );
      expectTruthful(client, await streamOf(client, () => streamed(body)));
      await until(cancelled, 3000);
      expect(sent()).toBeLessThan(64 * 1024 * 1024);
    },
    15_000,
  );

  test("SS02: 100,000 empty data lines in one event", async () => {
    const startedAt = performance.now();
    expectTruthful(client, await streamOf(client, () => streamed(`${"data:\n".repeat(100_000)}\n`)));
    expect(performance.now() - startedAt).toBeLessThan(2000);
  });

  test("SS04: other line ends, comments, unknown fields and a byte order mark change no word", async () => {
    const plain = await natural(client);
    const expected = wordsOf((await streamOf(client, () => streamed(plain))).text);
    expect(expected).not.toBe("");
    const variants = [
      plain.replaceAll("\n", "\r\n"),
      plain.replaceAll("\n", "\r"),
      plain.replaceAll("\n\n", "\r\n\n"),
      `\ufeff${plain}`,
      `: hello\n\nretry: 5000\n\n${plain.replaceAll("\n\n", "\n\n: beat\n\n")}`,
      plain.replaceAll("data: ", "id: 7\ndata: "),
    ];
    for (const variant of variants) {
      const { status, text } = await streamOf(client, () => streamed(variant));
      expect([status, wordsOf(text)]).toEqual([200, expected]);
    }
  });

  test("SS05, U13: characters of several bytes, cut at each byte", async () => {
    const plain = encode(await natural(client));
    const expected = wordsOf((await streamOf(client, () => streamed(plain))).text);
    for (const size of [1, 2, 3, 5]) {
      const { text } = await streamOf(client, () => {
        let at = 0;
        return streamed(
          new ReadableStream({
            pull(controller) {
              // Several pieces at a time keep it quick; each is a chunk of its own.
              for (let turn = 0; turn < 64 && at < plain.length; turn++, at += size)
                controller.enqueue(plain.slice(at, at + size));
              if (at >= plain.length) controller.close();
            },
          }),
        );
      });
      expect(wordsOf(text)).toBe(expected);
    }
  });

  test.each(["SS06", "U10"])("%s: a line of broken JSON is one error, and none of its bytes", async (id) => {
    const plain = await natural(client);
    const events = plain.split(/(?<=\n\n)/);
    const broken = [...events.slice(0, 3), 'data: {"canary": \n\n', ...events.slice(3)].join("");
    const half = `${events.slice(0, 3).join("")}data: {"canary":`;
    const result = await streamOf(client, () => streamed(id === "U10" ? half : broken));
    expectTruthful(client, result);
    expect(result.text).not.toContain("canary");
    expect(proxy.rows()[0]!.error_type).not.toBeNull();
  });

  test("SS07, U09: an end without its last event is an error, and the row says so", async () => {
    const events = (await natural(client)).split(/(?<=\n\n)/);
    for (const kept of [1, 3, Math.max(1, events.length - 5)]) {
      expectTruthful(client, await streamOf(client, () => streamed(events.slice(0, kept).join(""))));
      expect(proxy.rows()[0]).toMatchObject({ error_type: expect.any(String), stop_reason: null });
    }
  });

  test("SS08: what comes after the end is dropped", async () => {
    const plain = await natural(client);
    const { text } = await streamOf(client, () =>
      streamed(`${plain}data: {"canary":1}\n\nevent: canary\ndata: {}\n\n`),
    );
    expect(text).not.toContain("canary");
  });

  test.each([false, true])("SS09, U15: a page is 502 and not shown (stream: %p)", async (stream) => {
    proxy.demo.intercept(
      client.endpoint,
      () => new Response("<html>canary</html>", { headers: { "content-type": "text/html" } }),
    );
    const response = await proxy.post(client.path, { ...client.body, stream });
    const text = await response.text();
    expect(response.status).toBe(502);
    expect(text).not.toContain("canary");
    expect(JSON.parse(text).error.message).toMatch(/proxy or a portal/);
  });

  test.each([
    ["an empty body", () => new Response("", { headers: sse })],
    ["an empty body of nothing", () => new Response("")],
    ["204", () => new Response(null, { status: 204 })],
    ["JSON that is a list", () => Response.json([])],
    ["a redirect", () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:9/" } })],
  ])("SS10, U23: %s is 502", async (_name, answer) => {
    for (const stream of [false, true]) {
      proxy.demo.intercept(client.endpoint, answer);
      const response = await proxy.post(client.path, { ...client.body, stream });
      expect([stream, response.status]).toEqual([stream, 502]);
      expect(JSON.parse(await response.text()).error.message).toBeString();
    }
  });

  test.each([
    ["99999999", 86_400],
    ["-1", undefined],
    ["abc", undefined],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("SS14: retry-after %s keeps nobody waiting for ever", async (sent, most) => {
    const startedAt = performance.now();
    proxy.demo.intercept(client.endpoint, () =>
      Response.json(
        { error: { code: "rate_limited", message: "slow" } },
        { status: 429, headers: { "retry-after": sent } },
      ),
    );
    const response = await proxy.post(client.path, client.body);
    const told = response.headers.get("retry-after");
    expect([200, 429]).toContain(response.status);
    if (response.status === 429 && most !== undefined) expect(Number(told)).toBeLessThanOrEqual(86_400);
    if (response.status === 429 && Number(told) > 30) expect(response.headers.get("x-should-retry")).toBe("false");
    expect(performance.now() - startedAt).toBeLessThan(4000);
    // It rests for as long as it was told: the next row needs it awake.
    await proxy[Symbol.asyncDispose]();
    proxy = await startProxy();
  });
});

describe("calls", () => {
  const ask = {
    path: "/v1/messages",
    endpoint: "/chat/completions",
    body: { model: "gpt-5-mini", max_tokens: 50, messages },
  } as unknown as Client;
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-5-mini", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const call = (index: unknown, name = "f", id = `call_${index}`) =>
    chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "{}" } }] });
  const end = `${chunk({}, "tool_calls")}data: [DONE]\n\n`;

  beforeAll(async () => {
    const { offerOnly } = await import("../support/catalogue");
    offerOnly(proxy.demo, { "gpt-5-mini": ["/chat/completions"] });
  });

  test.each([2147483647, -1, 1e300, "7", null])("SS15: index %p makes no sparse array", async (index) => {
    const startedAt = performance.now();
    const { status, text } = await streamOf(ask, () => streamed(call(index) + end));
    expect([200, 502]).toContain(status);
    expect(/message_stop|error/.test(text)).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });

  test("SS15: 100,000 calls end, one way or the other", async () => {
    const startedAt = performance.now();
    const all = Array.from({ length: 100_000 }, (_, index) => call(index)).join("");
    const { text } = await streamOf(ask, () => streamed(all + end));
    expect(/"message_stop"|"error"/.test(text.slice(-2000))).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(8000);
  }, 15_000);

  test.each(["__proto__", "constructor", "toString"])("SS16: a tool called %s is a tool", async (name) => {
    const { text } = await streamOf(ask, () => streamed(call(0, name, name) + end));
    expect(text).toContain(`"name":"${name}"`);
    expect(text).toContain("message_stop");
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test.each([[-5], [1e308], ["7"], [null], [{}], [[]], [true]] as unknown[][])(
    "SS17: usage of %p leaves sums finite",
    async (count) => {
      const usage = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-5-mini", choices: [], usage: { prompt_tokens: count, completion_tokens: count, total_tokens: count, prompt_tokens_details: { cached_tokens: count } } })}\n\n`;
      const { status, text } = await streamOf(ask, () =>
        streamed(`${chunk({ content: "x" })}${chunk({}, "stop")}${usage}data: [DONE]\n\n`),
      );
      expect(status).toBe(200);
      expect(text).not.toContain("NaN");
      const row = proxy.rows()[0]!;
      for (const number of [row.input_tokens, row.output_tokens, row.cached_tokens, row.nano_credits])
        expect(number === null || (Number.isFinite(number) && (number as number) >= 0)).toBe(true);
      expect((await fetch(`${proxy.url}/api/admin/meta`)).status).toBe(200);
    },
  );
});

test("SS03: 300,000 small events flow, and memory stays", async () => {
  const event = encode(": a comment of some\n\n".repeat(1000));
  let left = 300;
  proxy.demo.intercept("/chat/completions", () =>
    streamed(
      new ReadableStream({
        async pull(controller) {
          if (left-- === 0) {
            controller.enqueue(encode("data: [DONE]\n\n"));
            return controller.close();
          }
          controller.enqueue(event);
          await Bun.sleep(0);
        },
      }),
    ),
  );
  const before = process.memoryUsage.rss();
  const response = await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", stream: true, messages });
  let size = 0;
  for await (const piece of response.body!) size += piece.length;
  expect(process.memoryUsage.rss() - before).toBeLessThan(150 * 1024 * 1024);
  expect(size).toBeGreaterThan(0);
});

test.each(["103 Early Hints", "101 Switching Protocols", "999 Odd"])(
  "SS10, U23: %s on the wire is no answer",
  async (line) => {
    await using odd = await startRaw((socket) => {
      if (line.startsWith("103"))
        for (let turn = 0; turn < 1000; turn++) socket.write(`HTTP/1.1 ${line}\r\nlink: </a>\r\n\r\n`);
      else socket.write(`HTTP/1.1 ${line}\r\ncontent-length: 0\r\n\r\n`);
      if (line.startsWith("103")) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    await using other = await startProxy({
      config: { providers: { odd: { type: "anthropic", baseUrl: odd.url, apiKey: "key-of-the-provider" } } },
    });
    for (const stream of [true, false]) {
      const response = await other.post("/odd/v1/messages", { model: "m", max_tokens: 5, stream, messages });
      expect([stream, response.status]).toEqual([stream, 502]);
    }
  },
  15_000,
);

test("SS22: of 20,000 models 5,000 are known, and names are only text", async () => {
  await using other = await startProxy();
  const names = ["<img src=x onerror=alert(1)>", "\u001b]0;x\u0007", "n".repeat(10_000)];
  other.demo.intercept(
    "/models",
    async ({ headers }) => {
      if (headers["x-whole-list"]) return undefined;
      const whole = await fetch(`${other.demo.url}/models`, { headers: { ...headers, "x-whole-list": "1" } });
      const [first] = ((await whole.json()) as { data: object[] }).data;
      const data = Array.from({ length: 20_000 }, (_, index) => ({ ...first, id: names[index] ?? `m-${index}` }));
      return Response.json({ data, object: "list" });
    },
    5,
  );
  const response = await fetch(`${other.url}/v1/models`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("application/json");
  const { data } = (await response.json()) as { data: { id: string }[] };
  expect(data.length).toBeLessThanOrEqual(5000);
  for (const { id } of data) expect(id.length).toBeLessThanOrEqual(256);
}, 15_000);
