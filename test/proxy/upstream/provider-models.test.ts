/** Scenario: what is known of a provider's models: from its list, and from the owner. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type OpenAiServer, startOpenAiServer } from "../../support/openai-server";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const hello = (model: string) => ({ model, messages: [{ role: "user", content: "Say hello." }] });

interface Listed {
  id: string;
  owned_by: string;
  display_name: string;
  upstream_endpoints: string[];
  max_context_window_tokens: number | null;
  max_output_tokens: number | null;
  capabilities: { tools: boolean; vision: boolean };
}

const listOf = async (proxy: RunningProxy, key?: string) => {
  const response = await fetch(`${proxy.url}/v1/models`, key ? { headers: { "x-api-key": key } } : {});
  const { data } = (await response.json()) as { data: Listed[] };
  return { state: response.headers.get("x-model-list"), data, provided: data.filter(({ id }) => id.includes("/")) };
};

/** A provider whose list is this text. */
const serving = (answer: () => Response | Promise<Response>) => {
  const asked: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      asked.push(`${request.method} ${new URL(request.url).pathname}`);
      return answer();
    },
  });
  return { url: `${server.url.origin}/v1`, asked, [Symbol.asyncDispose]: () => server.stop(true) };
};

describe("the list of models", () => {
  let mock: OpenAiServer;
  let proxy: RunningProxy;

  beforeAll(async () => {
    mock = await startOpenAiServer();
    proxy = await startProxy({
      config: {
        auth: { apiKeys: ["k-all-0123456789", { name: "narrow", key: "k-narrow-0123456789", models: ["own/*"] }] },
        providers: {
          ollama: { baseUrl: mock.url },
          openrouter: { baseUrl: mock.openRouterUrl },
          own: {
            type: "responses",
            baseUrl: mock.url,
            models: [
              "plain",
              {
                id: "rich",
                name: "Rich",
                context: 64_000,
                output: 8_000,
                vision: false,
                price: { input: 2, output: 10, cachedInput: 0.5 },
              },
            ],
          },
        },
      },
    });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await mock[Symbol.asyncDispose]();
  });

  test("the list of models has Copilot's models, then those of each provider, with what its list and the owner say", async () => {
    const { state, data, provided } = await listOf(proxy, "k-all-0123456789");
    expect(state).toBe("current");
    expect(provided.map(({ id }) => id)).toEqual(["ollama/gpt-small", "openrouter/gpt-small", "own/plain", "own/rich"]);
    expect(data.slice(-4)).toEqual(provided);
    expect(provided[0]).toMatchObject({ owned_by: "ollama", upstream_endpoints: ["/chat/completions"] });
    expect(provided[1]).toMatchObject({
      max_context_window_tokens: 128_000,
      max_output_tokens: 16_384,
      capabilities: { tools: true, vision: false },
    });
    expect(provided[3]).toMatchObject({
      display_name: "Rich",
      upstream_endpoints: ["/responses"],
      max_context_window_tokens: 64_000,
      max_output_tokens: 8_000,
      capabilities: { tools: true, vision: false },
    });
  });

  test("the list of models is read by both official packages, of which one gets one model", async () => {
    const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "k-all-0123456789", maxRetries: 0 });
    const anthropic = new Anthropic({ baseURL: proxy.url, apiKey: "k-all-0123456789", maxRetries: 0 });
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    expect(ids).toContain("own/rich");
    expect((await Array.fromAsync(anthropic.models.list())).map(({ id }) => id)).toEqual(ids);
    expect(await openai.models.retrieve("own/rich")).toMatchObject({ id: "own/rich", owned_by: "own" });
    expect(await anthropic.models.retrieve("own/rich")).toMatchObject({ display_name: "Rich" });
    const none = await openai.models.retrieve("own/none").catch((thrown: Error) => thrown.message);
    expect(none).toContain("There is no model `own/none`");
  });

  test("the list of models gives a request its price: the owner's, the list's, or none", async () => {
    const cost = async (model: string) => {
      const headers = { "x-api-key": "k-all-0123456789" };
      expect((await proxy.post("/v1/chat/completions", hello(model), { headers })).status).toBe(200);
      return proxy.rows()[0]!.cost;
    };
    // 40 tokens in and 8 out: 40 × 2 + 8 × 10 = 160 millionths of a dollar, of which a credit is a hundredth.
    expect(await cost("own/rich")).toBe(160 * 100 * 1000);
    expect(await cost("openrouter/gpt-small")).toBe(0);
    expect(await cost("ollama/gpt-small")).toBe(null);
    expect(await cost("own/plain")).toBe(null);
  });

  test("the list of models is on the page of the models, with the provider's name", async () => {
    const page = await (await fetch(`${proxy.url}/admin/models`)).text();
    expect(page).toContain("own/rich");
    expect(page.replace(/<[^>]+>/g, "")).toContain("200/1,000 credits per M in/out50 cached");
    const { items } = (await (await fetch(`${proxy.url}/api/admin/models`)).json()) as {
      items: { id: string; provider: string | null; accounts: string[] }[];
    };
    expect(items.find(({ id }) => id === "own/rich")).toMatchObject({ provider: "own", accounts: [] });
    expect(items.find(({ id }) => id === "claude-sonnet-4.6")).toMatchObject({ provider: null });
  });
});

test("a provider that hangs, fails or lists nothing useful takes no other model with it", async () => {
  await using hanging = serving(() => new Promise<Response>(() => {}));
  await using failing = serving(() => Response.json({ error: { message: "no" } }, { status: 500 }));
  await using odd = serving(() =>
    Response.json({
      data: [
        null,
        { id: "" },
        { id: 7 },
        { id: "x".repeat(300) },
        { id: "ok", context_length: -5, pricing: { prompt: "-1", completion: "-1" }, name: 9 },
        { id: "ok", context_length: 9 },
      ],
    }),
  );
  await using huge = serving(
    () =>
      new Response(`{"data":[${'{"id":"m"},'.repeat(1_000_000)}{"id":"n"}]}`, {
        headers: { "content-type": "application/json" },
      }),
  );
  const chat = (baseUrl: string) => ({ type: "chat", baseUrl });
  await using proxy = await startProxy({
    config: {
      providers: {
        hanging: chat(hanging.url),
        failing: chat(failing.url),
        odd: chat(odd.url),
        huge: chat(huge.url),
        gone: chat("http://127.0.0.1:9/v1"),
      },
    },
  });
  const first = await listOf(proxy);
  expect([first.state, first.provided.map(({ id }) => id)]).toEqual(["stale", ["odd/ok"]]);
  expect(first.provided[0]).toMatchObject({ display_name: "ok", max_context_window_tokens: null });
  expect(first.data.length).toBeGreaterThan(5);
  expect(proxy.lines.join("\n")).toContain("The model list of the provider failing could not be fetched");
  // A list that failed is not fetched again at once.
  expect((await listOf(proxy)).provided).toHaveLength(1);
  expect([failing.asked.length, odd.asked.length]).toEqual([1, 1]);
  const page = await (await fetch(`${proxy.url}/admin/models`)).text();
  expect(page).toContain("<code>failing</code> is unavailable");
});

test("the providers' models are the list without an account; without either, the error says why", async () => {
  await using mock = await startOpenAiServer();
  await using proxy = await startProxy({ accounts: [], config: { providers: { ollama: { baseUrl: mock.url } } } });
  const { state, data } = await listOf(proxy);
  expect([state, data.map(({ id }) => id)]).toEqual(["current", ["ollama/gpt-small"]]);
  await proxy.app.config.change({ providers: {} });
  const none = await fetch(`${proxy.url}/v1/models`);
  expect([none.status, await none.text()]).toEqual([424, expect.stringContaining("No GitHub account is signed in")]);
});

test("a list is fetched once in ten minutes, in the background of requests, and anew after a change", async () => {
  let now = Date.now();
  let context = 1000;
  await using provider = serving(() => Response.json({ data: [{ id: "m", context_length: context }] }));
  await using proxy = await startProxy({
    clock: { monotonic: () => now },
    config: { providers: { p: { type: "chat", baseUrl: provider.url } } },
  });
  const contextNow = async () => (await listOf(proxy)).provided[0]!.max_context_window_tokens;
  expect([await contextNow(), await contextNow(), provider.asked.length]).toEqual([1000, 1000, 1]);
  context = 2000;
  now += 11 * 60_000;
  const found = proxy.app.providerModels.find("p/m");
  expect((await found)!.model.limits.context).toBe(1000);
  await until(() => provider.asked.length === 2, "the provider is asked again");
  expect([await contextNow(), provider.asked.length]).toEqual([2000, 2]);
  context = 3000;
  await proxy.app.config.change({ logLevel: "debug" });
  expect(await contextNow()).toBe(3000);
});
