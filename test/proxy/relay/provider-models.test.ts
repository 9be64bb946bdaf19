/**
 * Scenario: models of providers under our own paths: any client's dialect in front, any provider's behind;
 * `fixtures/scenes/providers.txt` has their names, what they are sent and how they fail.
 */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { dialects } from "../../../src/dialects/hub/conversation";
import { clients } from "../../support/clients";
import { helloReply, startOpenAiServer, weatherReply } from "../../support/openai-server";
import { startProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";
import { weather } from "../../support/scenarios";
import { testScenes } from "../../support/scenes";

testScenes("providers");

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

test("what a provider is sent is the client's bytes but for the model's name, and no header of the client or of Copilot", async () => {
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

test("what fails at a provider is a provider that leads back here", async () => {
  await using own = await startProxy();
  await own.app.config.change({ providers: { self: { type: "chat", baseUrl: `${own.url}/v1` } } });
  const looped = await own.post("/v1/chat/completions", hello("self/gpt-5-mini"));
  expect([looped.status, await looped.text()]).toEqual([424, expect.stringContaining("sent by dragoman itself")]);
  expect(own.demo.journal.filter(({ path }) => path.includes("completions"))).toEqual([]);
});
