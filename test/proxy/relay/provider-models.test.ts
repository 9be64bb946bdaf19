/** Scenario: models of providers under our own paths: any client's dialect in front, any provider's behind. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { dialects } from "../../../src/dialects/hub/conversation";
import { clients } from "../../support/clients";
import { helloReply, startOpenAiServer, weatherReply } from "../../support/openai-server";
import { startProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";
import { weather } from "../../support/scenarios";

const clientKey = "k-client-0123456789";
const providerKey = "pk-provider-0123456789";

/** What a provider has to speak for each type, and a model of it. */
const types = { chat: "gemini-3.1-pro-preview", responses: "gpt-5.3-codex", messages: "claude-sonnet-4.6" } as const;

/** Another dragoman in front of the demo speaks all three dialects. */

const far = await startProxy({ config: { auth: { apiKeys: [providerKey] } } });
const mock = await startOpenAiServer(providerKey);
const near = await startProxy({
  accounts: [],
  config: {
    auth: { apiKeys: [clientKey, { name: "narrow", key: "k-narrow-0123456789", models: ["mock/*"] }] },
    modelAliases: { fast: "mock/gpt-small" },
    providers: {
      chat: { type: "chat", baseUrl: `${far.url}/v1`, apiKey: providerKey },
      responses: { type: "responses", baseUrl: `${far.url}/v1`, apiKey: providerKey },
      messages: { type: "messages", baseUrl: far.url, apiKey: providerKey },
      mock: { type: "chat", baseUrl: mock.url, apiKey: providerKey },
      "mock-responses": { type: "responses", baseUrl: mock.url, apiKey: providerKey },
      own: {
        type: "chat",
        baseUrl: mock.url,
        apiKey: providerKey,
        maxTokens: "max_tokens",
        thinking: "reasoning_content",
        unsupportedParams: ["stream_options", "tools.*.function.strict"],
      },
      wrong: { type: "chat", baseUrl: `${far.url}/v1`, apiKey: "pk-wrong-0123456789" },
      gone: { type: "chat", baseUrl: "http://127.0.0.1:9/v1" },
    },
  },
});
afterAll(async () => {
  for (const each of [near, far, mock]) await each[Symbol.asyncDispose]();
});

const withKey = { authorization: `Bearer ${clientKey}` };
const send = (path: string, body: unknown, headers: Record<string, string> = withKey) =>
  near.post(path, body, { headers });
const hello = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: "user", content: "Say hello." }],
  ...more,
});

describe.each([...dialects])("a client of %s", (dialect) => {
  describe.each(Object.entries(types))("and a provider of %s", (type, model) => {
    test.each(["full", "stream"] as const)("a client runs a tool loop on a provider's model, %s", async (mode) => {
      const client = clients[dialect](near.url, clientKey);
      const turn = { user: "What is the weather in Paris?" };
      const first = await client[mode]({ turns: [turn], tools: [weather] }, `${type}/${model}`);
      expect(first.calls).toMatchObject([{ name: "get_weather", input: { city: "Paris" } }]);
      expect(first.model).toBe(`${type}/${model}`);
      const results = first.calls.map(({ id }) => ({ id, text: "18 degrees in Paris" }));
      const second = await client[mode](
        { turns: [turn, { said: first }, { results }], tools: [weather] },
        `${type}/${model}`,
      );
      expect(second.text).toContain("18 degrees in Paris");
      expect(near.rows()[0]).toMatchObject({
        client_dialect: dialect,
        client_model: `${type}/${model}`,
        upstream_dialect: type,
        upstream_model: `${type}/${model}`,
        upstream_endpoint: `provider:${type}/${type === "messages" ? "v1/messages" : type === "chat" ? "chat/completions" : "responses"}`,
        account_id: null,
        http_status: 200,
        error_type: null,
        stream: mode === "stream" ? 1 : 0,
      });
      expect(near.rows()[0]!.input_tokens).toBeGreaterThan(0);
      expect(far.rows()[0]).toMatchObject({ client_dialect: type, client_model: model, http_status: 200 });
    });
  });
});

describe("an OpenAI-compatible server that is not ours", () => {
  describe.each([...dialects])("serves a client of %s", (dialect) => {
    test.each([
      ["mock", "full"],
      ["mock", "stream"],
      ["mock-responses", "full"],
      ["mock-responses", "stream"],
    ] as const)("through the provider %s, %s", async (provider, mode) => {
      const client = clients[dialect](near.url, clientKey);
      const model = `${provider}/gpt-small`;
      expect((await client[mode]({ turns: [{ user: "Say hello." }] }, model)).text).toBe(helloReply);
      const turn = { user: "What is the weather in Paris?" };
      const first = await client[mode]({ turns: [turn], tools: [weather] }, model);
      expect(first.calls).toMatchObject([{ name: "get_weather", input: { city: "Paris" } }]);
      const results = first.calls.map(({ id }) => ({ id, text: "18 degrees" }));
      const second = await client[mode]({ turns: [turn, { said: first }, { results }], tools: [weather] }, model);
      expect(second.text).toBe(weatherReply);
      expect(near.rows()[0]).toMatchObject({ input_tokens: 40, output_tokens: 8, http_status: 200 });
    });
  });

  test("an OpenAI-compatible server that is not ours embeds texts", async () => {
    const openai = new OpenAI({ baseURL: `${near.url}/v1`, apiKey: clientKey, maxRetries: 0 });
    const { data, model } = await openai.embeddings.create({ model: "mock/nomic-embed-text", input: ["a", "b"] });
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [0.25, -0.5, 1],
      [0.25, -0.5, 1],
    ]);
    expect(model).toBe("mock/nomic-embed-text");
    expect(mock.calls().at(-1)).toMatchObject({
      path: "/v1/embeddings",
      body: { model: "nomic-embed-text", embeddingInput: "a b" },
    });
    expect(near.rows()[0]).toMatchObject({ upstream_endpoint: "provider:mock/embeddings", http_status: 200 });
    const refused = await send("/v1/embeddings", { model: "messages/claude-sonnet-4.6", input: "a" });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("not an embeddings model")]);
  });
});

/** What Claude Code sends, shortened. */
const claudeCode = (model: string) => ({
  model,
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\n# Environment\n</system-reminder>" },
        { type: "text", text: "What is the weather in Paris?", cache_control: { type: "ephemeral" } },
      ],
    },
  ],
  system: [{ type: "text", text: "You are a Claude agent.", cache_control: { type: "ephemeral" } }],
  tools: [
    { name: "get_weather", description: "The weather.", input_schema: weather.schema, eager_input_streaming: true },
  ],
  max_tokens: 8000,
  metadata: { user_id: JSON.stringify({ session_id: "5a0c", device_id: "d" }) },
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
});

test.each(["mock", "mock-responses"])("Claude Code's request is streamed through %s", async (provider) => {
  const response = await send("/v1/messages?beta=true", claudeCode(`${provider}/gpt-small`), {
    "x-api-key": clientKey,
    "anthropic-beta": "claude-code-20250219",
    "user-agent": "claude-cli/2.1.330 (external, cli)",
  });
  const text = await response.text();
  expect(text).toContain('"partial_json":"{\\"city\\":\\"Paris\\"}"');
  expect(text).toContain('"stop_reason":"tool_use"');
  expect(text).toEndWith('data: {"type":"message_stop"}\n\n');
  const call = mock.calls().at(-1)!;
  expect(Object.keys(call.headers).sort()).toEqual(
    "accept accept-encoding authorization connection content-length content-type host user-agent x-dragoman-hops x-request-id".split(
      " ",
    ),
  );
  expect(call.body).toMatchObject({ model: "gpt-small", stream: true });
  expect(JSON.parse(near.rows()[0]!.dropped)).toContain("context_management");
});

describe("what a provider is sent", () => {
  test("is the client's bytes but for the model's name, and no header of the client or of Copilot", async () => {
    await using provider = startProvider({ key: "pk-0123456789", auth: "x-api-key", strict: true });
    await using proxy = await startProxy({
      config: {
        upstreamHeaders: { "x-for-copilot": "1" },
        providers: { p: { type: "messages", baseUrl: provider.url, apiKey: "pk-0123456789" } },
      },
    });
    const body = `{"model":"p/sonnet-large","messages":[{ "role":"user", "content":"Hé\\u00e9llo 🦜"}],"max_tokens":64.0,"own":1e2}`;
    const response = await proxy.post("/v1/messages?beta=true", body, {
      headers: {
        "anthropic-beta": "own-beta-1",
        "anthropic-version": "2023-01-01",
        cookie: "c=1",
        "x-initiator": "user",
      },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("49");
    expect(await response.json()).toMatchObject({ model: "p/sonnet-large", content: [{ text: "Good day" }] });
    expect(provider.seen.find(({ method }) => method === "POST")).toMatchObject({
      path: "/v1/messages",
      query: "?beta=true",
      body: body.replace("p/sonnet", "sonnet"),
      headers: { "anthropic-beta": "own-beta-1", "anthropic-version": "2023-01-01", "x-api-key": "pk-0123456789" },
    });
    expect(proxy.demo.journal.filter(({ path }) => path !== "/models" && !path.startsWith("/copilot"))).toEqual([]);
    const [row] = proxy.rows();
    expect(JSON.parse(row!.fixups)).toEqual(["model-name"]);
  });

  test("is the name of the output limit that it knows, and no field that it does not", async () => {
    const tools = [
      { type: "function", function: { name: "f", strict: true, parameters: { type: "object", properties: {} } } },
    ];
    await send("/v1/chat/completions", hello("own/gpt-small", { max_completion_tokens: 9, stream: true, tools })).then(
      (answer) => answer.text(),
    );
    const { body } = mock.calls().at(-1)!;
    expect(body).toMatchObject({ model: "gpt-small", max_tokens: 9 });
    expect(JSON.stringify(body)).not.toMatch(/stream_options|strict|max_completion_tokens/);
    expect(JSON.parse(near.rows()[0]!.fixups)).toEqual(
      expect.arrayContaining(["max-tokens-name", "refused:stream_options", "refused:tools.*.function.strict"]),
    );
    await send("/v1/messages", { ...hello("own/gpt-small"), max_tokens: 7 });
    expect(mock.calls().at(-1)!.body).toMatchObject({ max_tokens: 7 });
    await send("/v1/messages", { ...hello("mock/gpt-small"), max_tokens: 7 });
    expect(mock.calls().at(-1)!.body).toMatchObject({ max_completion_tokens: 7 });
  });

  test("is its earlier thinking in the field that it knows, and in none where no field is named", async () => {
    for (const [name, expected] of [
      ["own", { role: "assistant", content: "Hello.", reasoning_content: "They greet." }],
      ["mock", { role: "assistant", content: "Hello." }],
    ] as const) {
      const content = [
        { type: "thinking", thinking: "They greet.", signature: "" },
        { type: "text", text: "Hello." },
      ];
      const turn = (text: string) => ({ role: "user", content: text });
      const thinking = { type: "thinking", thinking: "Hm.", signature: "of another model" };
      const called = [thinking, { type: "tool_use", id: "t", name: "look", input: {} }];
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "Seen." }] };
      const later = [{ role: "assistant", content: called }, result];
      const messages = [turn("Hi."), { role: "assistant", content }, turn("Again."), ...later];
      await send("/v1/messages", { model: `${name}/gpt-small`, max_tokens: 9, messages });
      const sent = (mock.calls().at(-1)!.body as { messages: Record<string, unknown>[] }).messages;
      expect(sent).toHaveLength(5);
      expect(sent[1]).toEqual(expected);
      // A vendor that wants its thinking back wants some of each call.
      expect(sent[3]!.reasoning_content).toBe(name === "own" ? " " : undefined);
    }
  });

  test("is without a parameter that it has refused by name, then and for an hour", async () => {
    mock.failNext(400, "Unknown parameter: 'parallel_tool_calls'.");
    const body = hello("mock/picky", {
      parallel_tool_calls: false,
      tools: [{ type: "function", function: { name: "f" } }],
    });
    const before = mock.calls().length;
    expect((await send("/v1/chat/completions", body)).status).toBe(200);
    expect((await send("/v1/chat/completions", body)).status).toBe(200);
    const sent = mock
      .calls()
      .slice(before)
      .map((call) => "parallel_tool_calls" in call.body!);
    expect(sent).toEqual([true, false, false]);
    expect(JSON.parse(near.rows()[1]!.attempts).map(({ status }: { status: number }) => status)).toEqual([400, 200]);
  });
});

test.each([
  ["chat", "/v1/chat/completions"],
  ["responses", "/v1/responses"],
  ["messages", "/v1/messages"],
] as const)("what fails at a provider is an error of %s that names it", async (dialect, path) => {
  const body = (model: string) =>
    dialect === "responses" ? { model, input: "Say hello." } : { ...hello(model), max_tokens: 64 };
  const refused = await send(path, body("wrong/gpt-5-mini"));
  const text = await refused.text();
  expect([refused.status, text]).toEqual([
    dialect === "responses" ? 400 : 424,
    expect.stringContaining("The provider wrong refused the configured credential (status 401)"),
  ]);
  expect(text).not.toContain("pk-wrong");
  expect(refused.headers.get("x-should-retry")).toBe("false");
  const gone = await send(path, body("gone/any"));
  expect([gone.status, await gone.text()]).toEqual([502, expect.stringContaining("The provider gone")]);
  mock.failNext(429, "Slow down.");
  const limited = await send(path, body("mock/gpt-small"));
  expect([limited.status, await limited.text()]).toEqual([429, expect.stringContaining("Slow down.")]);
  expect(near.rows()[0]).toMatchObject({
    http_status: 429,
    account_id: null,
    error_message: "The provider mock answered with status 429 (server_error).",
  });
});

test("what fails at a provider is a provider that leads back here", async () => {
  await using own = await startProxy();
  await own.app.config.change({ providers: { self: { type: "chat", baseUrl: `${own.url}/v1` } } });
  const looped = await own.post("/v1/chat/completions", hello("self/gpt-5-mini"));
  expect([looped.status, await looped.text()]).toEqual([424, expect.stringContaining("sent by dragoman itself")]);
  expect(own.demo.journal.filter(({ path }) => path.includes("completions"))).toEqual([]);
});

describe("names", () => {
  test("an alias may stand for a provider's model, also while no account is signed in", async () => {
    const answer = (await (await send("/v1/chat/completions", hello("fast"))).json()) as { model: string };
    expect([answer.model, near.rows()[0]!.upstream_model]).toEqual(["fast", "mock/gpt-small"]);
  });

  test("an alias helps a key to a model that it may use, and to no other", async () => {
    await using proxy = await startProxy({
      config: {
        modelAliases: { "gpt-*": "ollama/gpt-small", "other-*": "claude-sonnet-4.6" },
        providers: { ollama: { baseUrl: mock.url, apiKey: providerKey } },
        auth: {
          apiKeys: ["k-plain-0123456789", { name: "ci", key: "k-ci-0123456789", models: ["ollama/*"] }],
        },
      },
    });
    const served = async (key: string, model: string) => {
      const headers = { "x-api-key": key };
      const response = await proxy.post("/v1/chat/completions", hello(model), { headers });
      return response.status === 200 ? proxy.rows()[0]!.upstream_model : response.status;
    };
    expect(await served("k-plain-0123456789", "other-next")).toBe("claude-sonnet-4.6");
    expect(await served("k-ci-0123456789", "gpt-next")).toBe("ollama/gpt-small");
    expect(await served("k-ci-0123456789", "other-next")).toBe(403);
    // A model's own name is no alias, and the key may not use that model.
    expect(await served("k-ci-0123456789", "gpt-5-mini")).toBe(403);
    expect(await served("k-ci-0123456789", "claude-next")).toBe(404);
    const retrieved = await fetch(`${proxy.url}/v1/models/gpt-next`, { headers: { "x-api-key": "k-ci-0123456789" } });
    expect(await retrieved.json()).toMatchObject({ id: "ollama/gpt-small" });
  });

  test("an unknown provider is an unknown model", async () => {
    await using proxy = await startProxy({ config: { providers: { ollama: {} } } });
    for (const model of ["nope/gpt", "constructor/x", "__proto__/x", "ollama/", "/x"]) {
      const response = await proxy.post("/v1/chat/completions", hello(model));
      expect([model, response.status]).toEqual([model, 404]);
    }
  });

  test("a key's models hold for providers, in every dialect and for counts", async () => {
    const narrow = { authorization: "Bearer k-narrow-0123456789" };
    expect((await send("/v1/chat/completions", hello("mock/gpt-small"), narrow)).status).toBe(200);
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"]) {
      const response = await send(path, { ...hello("chat/gpt-5-mini"), max_tokens: 64 }, narrow);
      expect([path, response.status, await response.text()]).toEqual([
        path,
        403,
        expect.stringContaining("may not use `chat/gpt-5-mini`"),
      ]);
    }
    expect((await send("/v1/embeddings", { model: "own/embed", input: "a" }, narrow)).status).toBe(403);
    expect((await send("/v1/messages/count_tokens", hello("mock/gpt-small"), narrow)).status).toBe(200);
  });

  test("a provider of another API has no paths of its own", async () => {
    for (const path of ["/mock/v1/messages", "/mock/v1/messages/count_tokens"]) {
      const response = await send(path, { ...hello("gpt-small"), max_tokens: 9 });
      expect([response.status, await response.text()]).toEqual([404, expect.stringContaining("as `mock/<model>`")]);
    }
    expect((await fetch(`${near.url}/mock/v1/models`, { headers: withKey })).status).toBe(404);
  });
});

test("a model whose name is not ASCII serves as a fallback; the header and the log line in JSON name it", async () => {
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      Response.json({
        id: "c",
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      }),
  });
  const providers = { local: { type: "chat", baseUrl: `${server.url.origin}/v1`, models: ["模型"] } };
  const fallbacks = { "claude-sonnet-4.6": ["local/模型"] };
  await using proxy = await startProxy({ logFormat: "json", config: { providers, fallbacks } });
  proxy.demo.intercept("/v1/messages", () => new Response("{}", { status: 529 }), 1);
  const messages = [{ role: "user", content: "Hi" }];
  const answer = await proxy.post("/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 50, messages });
  expect(answer.status).toBe(200);
  expect(decodeURIComponent(answer.headers.get("x-dragoman-model")!)).toBe("local/模型");
  expect(JSON.parse(proxy.lines.at(-1)!)).toMatchObject({
    upstream_model: "local/模型",
    fallbacks: [{ model: "claude-sonnet-4.6", status: 529 }],
  });
});
