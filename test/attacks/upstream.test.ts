/**
 * Scenario: an upstream that means harm, or has lost its mind: the client's stream ends truthfully, and we stay as we
 * were.
 */

import { afterAll, describe, expect, test } from "bun:test";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { cutOnce, startCut } from "../support/cut";
import { eventStream } from "../support/event-stream";
import { startProxy } from "../support/proxy";
import { drawn } from "../support/random";
import { startRaw } from "../support/raw-socket";
import { until } from "../support/until";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const messages = [{ role: "user", content: "Say Grüße, 世界 🎈" }];
const contents = [{ role: "user", parts: [{ text: "Say Grüße, 世界 🎈" }] }];
const google = (model: string) => `/v1beta/models/${model}:streamGenerateContent` as const;
const clients = [
  { path: "/v1/chat/completions", endpoint: "/chat/completions", body: { model: "gpt-5-mini", messages } },
  { path: "/v1/responses", endpoint: "/responses", body: { model: "gpt-5.3-codex", input: "Say Grüße, 世界 🎈" } },
  { path: "/v1/messages", endpoint: "/v1/messages", body: { model: "claude-sonnet-4.6", max_tokens: 99, messages } },
  // Through the hub.
  { path: "/v1/messages", endpoint: "/responses", body: { model: "gpt-5.3-codex", max_tokens: 99, messages } },
  { path: "/v1/responses", endpoint: "/v1/messages", body: { model: "claude-sonnet-4.6", input: "Hello" } },
  { path: `${google("claude-sonnet-4.6")}?alt=sse`, endpoint: "/v1/messages", body: { contents } },
  // As one JSON array.
  { path: google("gpt-5.3-codex"), endpoint: "/responses", body: { contents } },
] as const;
type Client = (typeof clients)[number];

const encode = (text: string) => new TextEncoder().encode(text);
const streamed = (body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>) => eventStream(body);

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
  if (client.path.startsWith("/v1beta/")) {
    const pieces = text.startsWith("[") ? JSON.parse(text) : framesOf(text).map(({ data }) => JSON.parse(data));
    expect(pieces.at(-1)).toMatchObject({ error: { code: expect.any(Number), message: expect.any(String) } });
    expect(text).not.toContain('"finishReason"');
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

describe.each(drawn("attacked clients", clients, 2))("$path from $endpoint", (client) => {
  test("100,000 empty data lines in one event", async () => {
    expectTruthful(client, await streamOf(client, () => streamed(`${"data:\n".repeat(100_000)}\n`)));
  });

  test("other line ends, comments, unknown fields and a byte order mark change no word", async () => {
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

  test.each(["in the middle", "at the end"])(
    "a line of broken JSON %s is one error, and none of its bytes",
    async (place) => {
      const plain = await natural(client);
      const events = plain.split(/(?<=\n\n)/);
      const broken = [...events.slice(0, 3), 'data: {"canary": \n\n', ...events.slice(3)].join("");
      const half = `${events.slice(0, 3).join("")}data: {"canary":`;
      const result = await streamOf(client, () => streamed(place === "at the end" ? half : broken));
      expectTruthful(client, result);
      expect(result.text).not.toContain("canary");
      expect(proxy.rows()[0]!.error_type).not.toBeNull();
    },
  );

  test("what comes after the end is dropped", async () => {
    const plain = await natural(client);
    const { text } = await streamOf(client, () =>
      streamed(`${plain}data: {"canary":1}\n\nevent: canary\ndata: {}\n\n`),
    );
    expect(text).not.toContain("canary");
  });

  test.each([
    ["a page", () => new Response("<html>canary</html>", { headers: { "content-type": "text/html" } })],
    ["an empty body", () => eventStream("")],
    ["an empty body of nothing", () => new Response("")],
    ["204", () => new Response(null, { status: 204 })],
    ["JSON that is a list", () => Response.json([])],
    ["a redirect", () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:9/" } })],
  ])("%s is 502", async (_name, answer) => {
    for (const stream of [false, true]) {
      proxy.demo.intercept(client.endpoint, answer);
      const response = await proxy.post(client.path, { ...client.body, stream });
      expect([stream, response.status]).toEqual([stream, 502]);
      expect(JSON.parse(await response.text()).error.message).not.toContain("canary");
    }
  });

  test("a reset in the middle is an error of its own dialect, asked for once, with what was told until then", async () => {
    const before = proxy.demo.journal.filter(({ path }) => path === client.endpoint).length;
    const cut = startCut(proxy.demo, client.endpoint, 6);
    const response = await proxy.post(client.path, { ...client.body, stream: true });
    expectTruthful(client, { status: response.status, text: await cutOnce(response, /^/, cut) });
    // Ours, and the one that the cut's own beginning was taken from.
    expect(proxy.demo.journal.filter(({ path }) => path === client.endpoint)).toHaveLength(before + 2);
    const [row] = proxy.rows();
    expect(row).toMatchObject({ error_type: "upstream_disconnected", stop_reason: null, http_status: 200 });
    expect(JSON.parse(row!.attempts)).toHaveLength(1);
    // Messages tell what went in at the start; the others only at the end.
    if (client.endpoint === "/v1/messages") expect(row!.input_tokens).toBeGreaterThan(0);
  });
});

test("bytes that never become an event are no silence; the whole may take no longer than its limit", async () => {
  await using other = await startProxy({ env: { DRAGOMAN_UPSTREAM_TIMEOUT_MS: "1000" } });
  other.app.limits.keepAlive = 200;
  other.app.limits.stream.total = 1000;
  let timer: Timer | undefined;
  let let_go = false;
  other.demo.intercept("/chat/completions", () =>
    streamed(
      new ReadableStream({
        start(controller) {
          controller.enqueue(encode("data: "));
          timer = setInterval(() => controller.enqueue(encode("x")), 20);
        },
        cancel() {
          let_go = true;
          clearInterval(timer);
        },
      }),
    ),
  );
  const response = await other.post("/v1/chat/completions", { model: "gpt-5-mini", stream: true, messages });
  const text = await response.text();
  // Signs of life meanwhile, and then its own error.
  expect(text).toMatch(/^(?:: .*\n\n)+data: .*"code":"timeout"/);
  expect(text).toContain("GitHub Copilot's answer was not complete after 1 s; it was given up.");
  await until(() => let_go, "the upstream's stream is cancelled");
  expect(other.rows()[0]).toMatchObject({ error_type: "timeout" });
});

test.each(["103 Early Hints", "101 Switching Protocols", "999 Odd"])(
  "an answer that begins with %s is told as a failure of the upstream",
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
);

test("an upstream that lists 100,000 models is known by 5,000, and names are only text", async () => {
  await using other = await startProxy();
  const names = ["<img src=x onerror=alert(1)>", "\u001b]0;x\u0007", "n".repeat(10_000), "\u202egnp.exe", "__proto__"];
  other.demo.intercept(
    "/models",
    () => {
      const data = Array.from({ length: 100_000 }, (_, index) => ({
        id: names[index] ?? `m-${index}`,
        name: "<b>".repeat(index < 100 ? 200 : 1),
        vendor: "\u001b[31mred",
        model_picker_enabled: true,
        supported_endpoints: ["/chat/completions"],
      }));
      return Response.json({ data, object: "list" });
    },
    5,
  );
  const response = await fetch(`${other.url}/v1/models`);
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    expect.stringContaining("application/json"),
  ]);
  const text = await response.text();
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
  const { data } = JSON.parse(text) as { data: { id: string; display_name?: string }[] };
  expect(data.length).toBeWithin(4990, 5001);
  for (const model of data)
    for (const value of Object.values(model))
      expect(typeof value === "string" ? value.length : 0).toBeLessThanOrEqual(256);
  const unknown = await other.post("/v1/chat/completions", { model: "nobody", messages });
  expect([unknown.status, (await unknown.text()).includes("\u001b")]).toEqual([404, false]);
  expect(other.lines.join("")).not.toContain("\u001b");
});

test("a list of models that is larger than any is an outage in words, not a crash", async () => {
  await using other = await startProxy();
  other.demo.intercept("/models", () => new Response(" ".repeat(40 * 1024 * 1024)), 5);
  const response = await fetch(`${other.url}/v1/models`);
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining("32 MiB") } });
});
