/** Scenario: other upstreams under paths of their own: bytes through, credentials kept apart, failures their own. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { ownSegments } from "../../src/config/provider-schema";
import { clientEndpoints } from "../../src/routes/clients";
import { eventStream } from "../support/event-stream";
import {
  fullReply,
  models,
  oddStream,
  plainStream,
  problem,
  startProvider,
  type TestProvider,
} from "../support/provider";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const clientKey = "k-client-0123456789";
const adminToken = "t-admin-0123456789";
const strictKey = "pk-strict-0123456789";
const looseKey = "pk-loose-0123456789";

const strict = startProvider({ key: strictKey, auth: "x-api-key", strict: true });
const loose = startProvider({ key: looseKey, auth: "bearer" });
const proxy = await startProxy({
  config: {
    anthropicApiKey: "sk-ant-demo-0000",
    auth: { apiKeys: [clientKey] },
    providers: {
      strict: { type: "vendorx", baseUrl: strict.url, apiKey: strictKey },
      loose: { type: "anthropic", baseUrl: `${loose.url}/deep/`, apiKey: looseKey, auth: "bearer" },
      gone: { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: "pk-gone-0123456789" },
    },
  },
  env: { ADMIN_TOKEN: adminToken },
});
afterAll(async () => {
  for (const each of [proxy, strict, loose]) await each[Symbol.asyncDispose]();
});

const hello = { model: "sonnet-large", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };
const withKey = { "x-api-key": clientKey };
const send = (path: string, body: unknown = hello, headers: Record<string, string> = {}) =>
  proxy.post(path, body, { headers: { ...withKey, ...headers } });
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(proxy.url + path, { headers: { ...withKey, ...headers } });

describe("a provider that is not there", () => {
  test("a POST to a provider that is not there is 404, and stands in no row", async () => {
    const before = proxy.rows().length;
    for (const path of ["/nope/v1/messages", "/nope/v1/messages/count_tokens"]) {
      const response = await send(path);
      expect([response.status, await response.json()]).toMatchObject([
        404,
        {
          error: { type: "not_found_error", message: expect.stringContaining("nope") },
          request_id: response.headers.get("x-request-id"),
        },
      ]);
    }
    expect(proxy.rows().length).toBe(before);
  });

  test("a provider that is not there is none of the paths that are our own", () => {
    const first = [...clientEndpoints(), ...adminEndpoints()].map(({ path }) => path.split("/")[1]!);
    expect(first.filter((part) => part !== "" && !part.startsWith(":") && !ownSegments.has(part))).toEqual([]);
  });

  test("a provider that is not there needs a client key like the models of ours, which hides whether it is there", async () => {
    for (const name of ["strict", "nope"]) {
      expect((await proxy.post(`/${name}/v1/messages`, hello)).status).toBe(401);
      expect((await fetch(`${proxy.url}/${name}/v1/models`)).status).toBe(401);
    }
  });
});

describe("what a provider is sent", () => {
  afterEach(() => {
    strict.seen.length = 0;
    loose.seen.length = 0;
  });

  test("is the client's bytes, whatever they say", async () => {
    const body = `{ "model":"sonnet-large","messages":[{"role":"user","content":"Hé\\u00e9llo 🦜"}],\n "max_tokens": 64.0, "own": 1e2, "top_k": 5 }`;
    expect(await (await send("/strict/v1/messages", body)).text()).toBe(fullReply("sonnet-large"));
    expect(strict.seen[0]).toMatchObject({ method: "POST", path: "/v1/messages", body });
  });

  test("is what Claude Code says of the request, not what it says of itself", async () => {
    const betas = "claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-05-13";
    const response = await proxy.post(
      "/strict/v1/messages?beta=true",
      { ...hello, stream: true },
      {
        headers: {
          accept: "application/json",
          authorization: `Bearer ${clientKey}`,
          "anthropic-beta": betas,
          "anthropic-dangerous-direct-browser-access": "true",
          "anthropic-version": "2023-06-01",
          "user-agent": "claude-cli/2.1.329 (external, sdk-cli)",
          "x-app": "cli",
          "x-claude-code-session-id": "5a0c",
          "x-stainless-retry-count": "0",
        },
      },
    );
    expect(await response.text()).toBe(plainStream(hello.model));
    expect(strict.seen[0]).toMatchObject({ query: "?beta=true", headers: { "anthropic-beta": betas } });
  });

  test("is its own key once, and nothing the client proved itself by", async () => {
    const secrets = { authorization: `Bearer ${clientKey}`, cookie: `c=${clientKey}`, "x-admin-token": adminToken };
    for (const path of ["/strict/v1/messages", "/loose/v1/messages"])
      expect((await send(path, hello, { ...secrets, "x-forwarded-for": "1.2.3.4", "x-own": "1" })).status).toBe(200);
    for (const path of ["/strict/v1/models", "/loose/v1/models"]) expect((await get(path, secrets)).status).toBe(200);
    for (const { seen } of [strict, loose])
      for (const { headers } of seen) {
        const values = Object.values(headers).join("\n");
        expect([values.includes(clientKey), values.includes(adminToken), "cookie" in headers]).toEqual([
          false,
          false,
          false,
        ]);
        expect(values.split(/pk-(?:strict|loose)-0123456789/)).toHaveLength(2);
        expect([headers["user-agent"], headers["x-own"], headers["x-forwarded-for"]]).toEqual([
          "dragoman/0.0.0-test",
          undefined,
          undefined,
        ]);
      }
    expect(strict.seen[0]!.headers).not.toHaveProperty("authorization");
    expect(loose.seen[0]!.headers).not.toHaveProperty("x-api-key");
  });

  test("is the client's version and betas, in either spelling, and a version where it sent none", async () => {
    await send("/strict/v1/messages", hello, { "anthropic-version": "2023-01-01", "anthropic-beta": "one,two" });
    await send("/strict/v1/messages", hello, { "vendorx-beta": "three" });
    expect(strict.seen.map(({ headers }) => [headers["anthropic-version"], headers["anthropic-beta"]])).toEqual([
      ["2023-01-01", "one,two"],
      ["2023-06-01", "three"],
    ]);
  });

  test("is only the query that the API has", async () => {
    await send("/strict/v1/messages?beta=true&x=%0d%0a&beta=%0d%0aX-Evil:1&limit=x");
    await get("/strict/v1/models?limit=1000&after_id=claude-1&key=secret&before_id=a%2Fb");
    expect(strict.seen.map(({ query }) => query)).toEqual(["?beta=true", "?limit=1000&after_id=claude-1"]);
  });

  test("does not go through HTTP_PROXY on this machine", async () => {
    let proxied = 0;
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++proxied)) });
    process.env.HTTP_PROXY = other.url.origin;
    try {
      const direct = { proxy: false, headers: withKey } as RequestInit;
      expect((await proxy.post("/strict/v1/messages", hello, direct)).status).toBe(200);
      expect((await fetch(`${proxy.url}/strict/v1/models`, direct)).status).toBe(200);
    } finally {
      delete process.env.HTTP_PROXY;
    }
    expect([strict.seen.length, proxied]).toEqual([2, 0]);
  });
});

test.each([
  ["", "/v1/messages"],
  ["/", "/v1/messages"],
  ["/anthropic", "/anthropic/v1/messages"],
  ["/anthropic//", "/anthropic/v1/messages"],
  ["/api/v1", "/api/v1/messages"],
  ["/api/v1/", "/api/v1/messages"],
])("an address that ends in %j is asked at %s", async (end, path) => {
  await using provider = startProvider({ key: "k", auth: "x-api-key" });
  await using other = await startProxy({
    config: { providers: { p: { type: "anthropic", baseUrl: provider.url + end, apiKey: "k" } } },
  });
  expect((await other.post("/p/v1/messages", hello)).status).toBe(200);
  expect(provider.seen.map((each) => each.path)).toEqual([path]);
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

test.each([
  [7, 200],
  [8, 424],
])("a request that %d proxies have passed on is %d", async (count, status) => {
  const hops = Array.from({ length: count }, () => crypto.randomUUID());
  const before = strict.seen.length;
  const answer = await send("/strict/v1/messages", hello, { "x-dragoman-hops": hops.join(",") });
  expect(answer.status).toBe(status);
  const [call] = strict.seen.slice(before);
  if (status === 200) expect(call!.headers["x-dragoman-hops"]!.split(",")).toEqual([...hops, expect.any(String)]);
  else expect([call, await answer.text()]).toEqual([undefined, expect.stringContaining("too many proxies")]);
});

test("another dragoman is a provider like any other", async () => {
  await using far = await startProxy({ config: { auth: { apiKeys: ["k-far-0123456789"] } } });
  await using near = await startProxy({
    config: { providers: { far: { type: "anthropic", baseUrl: far.url, apiKey: "k-far-0123456789" } } },
  });
  const response = await near.post("/far/v1/messages", { ...hello, model: "claude-sonnet-4.6" });
  expect([response.status, far.rows()[0]!.path, near.rows()[0]!.path]).toEqual([
    200,
    "/v1/messages",
    "/far/v1/messages",
  ]);
});

describe("what a client gets", () => {
  test("is the provider's bytes, full and streamed, also those that only its makers know", async () => {
    for (const [name, stream] of [
      ["strict", plainStream],
      ["loose", oddStream],
    ] as const) {
      expect(await (await send(`/${name}/v1/messages`)).text()).toBe(fullReply(hello.model));
      const streamed = await send(`/${name}/v1/messages`, { ...hello, stream: true });
      expect(streamed.headers.get("content-type")).toStartWith("text/event-stream");
      expect(await streamed.text()).toBe(stream(hello.model));
    }
  });

  test("few of the provider's headers reach the client", async () => {
    for (const response of [await send("/strict/v1/messages"), await get("/strict/v1/models")]) {
      expect(response.headers.get("request-id")).toBe("req_011");
      expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("49");
      expect(response.headers.get("x-ratelimit-limit-tokens")).toBe("9000");
      expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      for (const name of ["set-cookie", "access-control-allow-origin", "server"])
        expect(response.headers.has(name)).toBe(false);
    }
  });

  test("is never a page, whatever the provider calls it", async () => {
    const page = (text: string) => new Response(text, { headers: { "content-type": "text/html" } });
    strict.next(() => page("{}"));
    expect((await get("/strict/v1/models")).headers.get("content-type")).toBe("application/json");
    strict.next(() => page("<script>alert(1)</script>"));
    const response = await send("/strict/v1/messages");
    expect([response.status, response.headers.get("content-type")]).toEqual([502, "application/json;charset=utf-8"]);
    expect(await response.text()).not.toContain("script");
  });

  test("is 502 for a list of 50 MB, or one that is none", async () => {
    for (const body of [new Uint8Array(50 * 1024 * 1024).fill(32), "<html>", "[]", "", "null"]) {
      strict.next(() => new Response(body, { headers: { "content-type": "application/json" } }));
      const response = await get("/strict/v1/models");
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({
        type: "error",
        error: { type: "api_error", message: expect.stringContaining("The provider strict") },
      });
    }
  });

  test("is a count made here, also where Anthropic's own counter may be asked", async () => {
    const asked = () => proxy.demo.journal.filter(({ path }) => path.endsWith("count_tokens")).length;
    const before = [asked(), strict.seen.length];
    const response = await send("/strict/v1/messages/count_tokens", { ...hello, model: "claude-sonnet-4.6" });
    expect([response.status, response.headers.get("x-token-count")]).toEqual([200, "estimate"]);
    expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
    expect([asked(), strict.seen.length]).toEqual(before as [number, number]);
  });
});

describe("what fails at a provider", () => {
  test.each([401, 403])("its %i is 424 that names it, and does not show the key it repeats", async (status) => {
    for (const words of [`invalid x-api-key ${strictKey}`, ""]) {
      strict.next(() => (words ? problem(status, "authentication_error", words) : new Response("no", { status })));
      const response = await send("/strict/v1/messages");
      expect([response.status, response.headers.get("x-should-retry")]).toEqual([424, "false"]);
      const text = await response.text();
      expect(JSON.parse(text)).toMatchObject({
        type: "error",
        error: {
          type: "api_error",
          message: expect.stringContaining("The provider strict refused the configured credential"),
        },
      });
      expect(text).not.toContain(strictKey);
    }
    expect(proxy.rows()[0]).toMatchObject({ http_status: 424, error_type: "provider_refused" });
    expect(proxy.lines.join("")).not.toContain(strictKey);
  });

  test("a configured key that is wrong, or sent in the wrong way, is such a 424", async () => {
    const wrong = { type: "anthropic", baseUrl: strict.url, apiKey: "wrong" };
    const way = { ...wrong, apiKey: strictKey, auth: "bearer" };
    await using other = await startProxy({ config: { providers: { wrong, way } } });
    for (const name of ["wrong", "way"]) {
      expect((await other.post(`/${name}/v1/messages`, hello)).status).toBe(424);
      expect((await fetch(`${other.url}/${name}/v1/models`)).status).toBe(424);
    }
  });

  test("a provider's error in words of its own keeps its status, its words and how long to wait", async () => {
    strict.next(() => problem(429, "rate_limit_error", `Slow down, ${strictKey}`, { "retry-after": "7" }));
    const limited = await send("/strict/v1/messages");
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "7"]);
    expect(await limited.json()).toEqual({
      type: "error",
      error: { type: "rate_limit_error", message: "Slow down, [secret]" },
      request_id: "req_012",
    });
    strict.next(() => problem(529, "overloaded_error", "Overloaded"));
    const overloaded = await send("/strict/v1/messages");
    expect([overloaded.status, await overloaded.json()]).toMatchObject([529, { error: { type: "overloaded_error" } }]);
    expect(proxy.rows()[0]).toMatchObject({
      http_status: 529,
      error_message: "The provider strict answered with status 529 (overloaded_error).",
    });
    strict.next(() => new Response("<h1>Bad gateway</h1>", { status: 500, headers: { "content-type": "text/html" } }));
    const broken = await send("/strict/v1/messages");
    expect([broken.status, await broken.json()]).toMatchObject([
      500,
      { error: { type: "api_error", message: "The provider strict answered with status 500." } },
    ]);
  });

  test("a provider that is not reached, redirects or is silent is named", async () => {
    const unreachable = await send("/gone/v1/messages");
    expect([unreachable.status, await unreachable.json()]).toMatchObject([
      502,
      { error: { message: "The provider gone refused the connection." } },
    ]);
    strict.next(() => Response.redirect(`${loose.url}/v1/messages`, 307));
    const before = loose.seen.length;
    const moved = await send("/strict/v1/messages");
    expect([moved.status, loose.seen.length]).toEqual([502, before]);
    await using hasty = await startProxy({
      config: { providers: { strict: { type: "anthropic", baseUrl: strict.url, apiKey: strictKey } } },
      env: { DRAGOMAN_UPSTREAM_TIMEOUT_MS: "100" },
    });
    const { promise, resolve } = Promise.withResolvers<Response>();
    strict.next(() => promise);
    expect((await hasty.post("/strict/v1/messages", hello)).status).toBe(504);
    resolve(new Response());
  });

  test("a failure in the middle of a provider's stream is its last event", async () => {
    const opening = plainStream("m").split("event: content_block_stop")[0]!;
    const ask = async () => (await send("/strict/v1/messages", { ...hello, stream: true })).text();

    strict.next(() => eventStream(opening));
    const cut = await ask();
    expect(cut).toStartWith(opening);
    expect(cut.slice(opening.length)).toMatch(/^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
    expect(proxy.rows()[0]).toMatchObject({ error_type: "upstream_disconnected", stop_reason: null });

    strict.next(() => eventStream(`${opening}data: <html>\n\n`));
    expect((await ask()).slice(opening.length)).toMatch(/^event: error\ndata: .*not JSON/);

    const told = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`;
    strict.next(() => eventStream(opening + told));
    expect(await ask()).toBe(opening + told);
    expect(proxy.rows()[0]).toMatchObject({ error_type: "overloaded_error" });

    strict.next(() => eventStream(told));
    const first = await send("/strict/v1/messages", { ...hello, stream: true });
    expect([first.status, await first.json()]).toMatchObject([
      529,
      { error: { type: "overloaded_error", message: "Overloaded" } },
    ]);
  });

  test("a failure of a provider touches no account of GitHub's", async () => {
    const before = JSON.stringify(proxy.app.accounts.map(({ state }) => state));
    for (const status of [401, 402, 403, 429, 500, 503])
      for (let time = 0; time < 6; time++) {
        strict.next(() => problem(status, "api_error", "quota exceeded: suspended for abuse"));
        const answer = await send("/strict/v1/messages");
        expect(proxy.rows()[0]!.http_status).toBe(answer.status);
      }
    expect(JSON.stringify(proxy.app.accounts.map(({ state }) => state))).toBe(before);
    expect((await send("/v1/messages", { ...hello, model: "claude-sonnet-4.6" })).status).toBe(200);
    expect((await send("/loose/v1/messages")).status).toBe(200);
    expect((await send("/strict/v1/messages")).status).toBe(200);
  });
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
      headers: withKey,
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

test("an exchange is a row of the history, without an account", async () => {
  await (await send("/strict/v1/messages?beta=true", { ...hello, stream: true }, { "user-agent": "tester/2" })).text();
  await until(() => proxy.rows()[0]!.client_name === "tester/2", "the row is of the other client");
  expect(proxy.rows()[0]).toMatchObject({
    path: "/strict/v1/messages",
    client_dialect: "messages",
    upstream_dialect: "messages",
    upstream_endpoint: "provider:strict/v1/messages",
    account_id: null,
    client_model: "sonnet-large",
    upstream_model: "sonnet-large",
    stream: 1,
    initiator: "user",
    http_status: 200,
    stop_reason: "end_turn",
    input_tokens: 112,
    cached_tokens: 100,
    output_tokens: 5,
    ...{ cost: null, cost_unit: null },
    error_type: null,
    attempts: expect.stringMatching(/^\[\{"account":null,"status":200,"ms":\d+\}\]$/),
  });
});

test("a page of a listed origin may call a provider as it may call our own models", async () => {
  const origin = "http://localhost:3000";
  const providers = { strict: { type: "anthropic", baseUrl: strict.url, apiKey: strictKey } };
  await using other = await startProxy({ config: { allowedOrigins: [origin], providers } });
  const from = (origin: string) => fetch(`${other.url}/strict/v1/models`, { headers: { origin } });
  expect((await from(origin)).headers.get("access-control-allow-origin")).toBe(origin);
  expect((await from("https://evil.example")).status).toBe(403);
});

test.each(["strict", "loose"])(
  "Anthropic's own SDK reads replies, streams, counts and the list of the provider %s",
  async (name) => {
    const client = (apiKey = clientKey) => new Anthropic({ baseURL: `${proxy.url}/${name}`, apiKey, maxRetries: 0 });
    const asked = { ...hello, messages: [{ role: "user" as const, content: "Hello" }] };
    const said = { content: [{ type: "text", text: "Good day" }], stop_reason: "end_turn" };
    expect(await client().messages.create(asked)).toMatchObject(said);
    const streamed = await client().messages.stream(asked).finalMessage();
    expect(streamed).toMatchObject({ ...said, usage: { input_tokens: 12, output_tokens: 5 } });
    expect((await client().models.list()).data).toEqual(models.data as never);
    expect((await client().messages.countTokens(asked)).input_tokens).toBeGreaterThan(0);
    const refused = await client("wrong")
      .messages.create(asked)
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Anthropic.AuthenticationError);
  },
);
