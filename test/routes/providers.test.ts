/** Scenario: other upstreams under paths of their own: bytes through, credentials kept apart, failures their own. */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { ownSegments } from "../../src/config/provider-schema";
import { clientEndpoints } from "../../src/routes/clients";
import { eventStream } from "../support/event-stream";
import { models, plainStream, startProvider, type TestProvider } from "../support/provider";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";
import { until } from "../support/until";

testScenes("own-paths");

const strictKey = "pk-strict-0123456789";
const looseKey = "pk-loose-0123456789";

const strict = startProvider({ key: strictKey, auth: "x-api-key", strict: true });
const loose = startProvider({ key: looseKey, auth: "bearer" });
const proxy = await startProxy({
  config: {
    providers: {
      strict: { type: "vendorx", baseUrl: strict.url, apiKey: strictKey },
      loose: { type: "anthropic", baseUrl: `${loose.url}/deep/`, apiKey: looseKey, auth: "bearer" },
    },
  },
});
afterAll(async () => {
  for (const each of [proxy, strict, loose]) await each[Symbol.asyncDispose]();
});

const hello = { model: "sonnet-large", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };

test("a provider that is not there is none of the paths that are our own", () => {
  const first = [...clientEndpoints(), ...adminEndpoints()].map(({ path }) => path.split("/")[1]!);
  expect(first.filter((part) => part !== "" && !part.startsWith(":") && !ownSegments.has(part))).toEqual([]);
});

test("a provider on this machine is not asked through HTTP_PROXY", async () => {
  let proxied = 0;
  using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++proxied)) });
  const before = strict.seen.length;
  process.env.HTTP_PROXY = other.url.origin;
  try {
    const direct = { proxy: false } as RequestInit;
    expect((await proxy.post("/strict/v1/messages", hello, direct)).status).toBe(200);
    expect((await fetch(`${proxy.url}/strict/v1/models`, direct)).status).toBe(200);
  } finally {
    delete process.env.HTTP_PROXY;
  }
  expect([strict.seen.length - before, proxied]).toEqual([2, 0]);
});

test("an address that leads back to us is 424 after one hop, over our own models and over itself", async () => {
  await using own = await startProxy();
  const provider = (baseUrl: string) => ({ type: "anthropic", baseUrl, apiKey: "pk-own-0123456789" });
  await own.app.config.change({ providers: { models: provider(own.url), self: provider(`${own.url}/self`) } });
  for (const name of ["models", "self"]) {
    const response = await own.post(`/${name}/v1/messages`, hello);
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([424, "false"]);
    expect(await response.json()).toMatchObject({ type: "error", error: { type: "api_error" } });
  }
  expect(own.rows().map(({ http_status }) => http_status)).toEqual([424, 424]);
  expect(own.demo.journal.filter(({ path }) => path === "/v1/messages")).toEqual([]);
});

test("a list of 50 MB is 502", async () => {
  const body = new Uint8Array(50 * 1024 * 1024).fill(32);
  strict.next(() => new Response(body, { headers: { "content-type": "application/json" } }));
  const response = await fetch(`${proxy.url}/strict/v1/models`);
  expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("The provider strict")]);
});

describe("while it runs", () => {
  /** A stream that is held in its middle until it is let go. */
  const heldStream = () => {
    const [opening, ending] = plainStream("m").split(/(?=event: content_block_stop)/) as [string, string];
    const held = Promise.withResolvers<void>();
    let hungUp = false;
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode(opening));
        await held.promise;
        if (hungUp) return;
        controller.enqueue(new TextEncoder().encode(ending));
        controller.close();
      },
      cancel() {
        hungUp = true;
      },
    });
    const answer = eventStream(body);
    return { answer, go: held.resolve, hungUp: () => hungUp };
  };
  const provider = (to: TestProvider) => ({ p: { type: "anthropic", baseUrl: to.url, apiKey: strictKey } });

  test("a provider that is removed ends its streams well, and the next request is 404", async () => {
    await using other = await startProxy({ config: { providers: provider(strict) } });
    const held = heldStream();
    strict.next(() => held.answer);
    const running = await other.post("/p/v1/messages", { ...hello, stream: true });
    expect((await other.post("/api/admin/config", { providers: {} })).status).toBe(200);
    expect((await other.post("/p/v1/messages", hello)).status).toBe(404);
    held.go();
    expect(await running.text()).toBe(plainStream("m"));
    expect(other.rows()[0]).toMatchObject({ http_status: 200, stop_reason: "end_turn" });
  });

  test("a client that hangs up takes the provider's call with it", async () => {
    const held = heldStream();
    strict.next(() => held.answer);
    const controller = new AbortController();
    const running = await fetch(`${proxy.url}/strict/v1/messages`, {
      method: "POST",
      body: JSON.stringify({ ...hello, stream: true }),
      signal: controller.signal,
    });
    await running.body!.getReader().read();
    controller.abort();
    await until(held.hungUp, "the provider is hung up on");
    held.go();
    await until(() => proxy.rows()[0]!.http_status === 499, "the row says that the client left");
  });

  test("what log level, web search, provider and alias are is changed for the very next request, and for no stream in flight", async () => {
    await using first = startProvider({ key: strictKey, auth: "x-api-key" });
    await using second = startProvider({ key: strictKey, auth: "x-api-key" });
    await using other = await startProxy({ config: { providers: provider(first) } });
    const held = heldStream();
    first.next(() => held.answer);
    const ours = other.post("/v1/chat/completions", {
      model: "gpt-5-mini",
      stream: true,
      messages: [{ role: "user", content: "[demo: long 40] Hello" }],
    });
    const running = await other.post("/p/v1/messages", { ...hello, stream: true });
    const search = { model: "gpt-5-mini", input: "Hello", tools: [{ type: "web_search" }] };
    const alias = { model: "fast", messages: [{ role: "user", content: "Hello" }] };
    const searches = () => JSON.stringify(other.demo.journal.findLast(({ path }) => path === "/responses")!.body);

    await other.post("/v1/responses", search);
    expect(searches()).toContain("web_search");
    expect((await other.post("/v1/chat/completions", alias)).status).toBe(404);
    expect(other.lines.some((line) => line.includes(" debug "))).toBe(false);
    const change = {
      logLevel: "debug",
      useResponsesApiWebSearch: false,
      providers: provider(second),
      modelAliases: { fast: "gpt-5-mini" },
    };
    // It is at another origin now, so its key comes with it.
    expect((await other.post("/api/admin/config", change)).status).toBe(200);
    await other.post("/v1/responses", search);
    expect(searches()).not.toContain("web_search");
    expect((await other.post("/v1/chat/completions", alias)).status).toBe(200);
    expect((await other.post("/p/v1/messages", hello)).status).toBe(200);
    expect([first.seen.length, second.seen.length]).toEqual([1, 1]);
    other.app.logger.debug("a line");
    expect(other.lines.at(-1)).toContain(" debug a line");

    held.go();
    expect(await running.text()).toBe(plainStream("m"));
    expect(await (await ours).text()).toEndWith("data: [DONE]\n\n");
  });
});

test.each(["strict", "loose"])(
  "Anthropic's own SDK reads replies, streams, counts and the list of the provider %s",
  async (name) => {
    const client = new Anthropic({ baseURL: `${proxy.url}/${name}`, apiKey: "unused", maxRetries: 0 });
    const asked = { ...hello, messages: [{ role: "user" as const, content: "Hello" }] };
    const said = { content: [{ type: "text", text: "Good day" }], stop_reason: "end_turn" };
    expect(await client.messages.create(asked)).toMatchObject(said);
    const streamed = await client.messages.stream(asked).finalMessage();
    expect(streamed).toMatchObject({ ...said, usage: { input_tokens: 12, output_tokens: 5 } });
    expect((await client.models.list()).data).toEqual(models.data as never);
    expect((await client.messages.countTokens(asked)).input_tokens).toBeGreaterThan(0);
  },
);
