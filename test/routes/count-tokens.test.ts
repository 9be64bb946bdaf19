/**
 * Scenario: `POST /v1/messages/count_tokens`, and `/v1/responses/input_tokens` of OpenAI's: exact where Anthropic's counter may be
 * asked, else an estimate, and never a failure.
 */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { anthropicKey, countedTokens, startCounter } from "../support/anthropic-counter";
import { type ProxyOptions, type RunningProxy, startProxy } from "../support/proxy";

const path = "/v1/messages/count_tokens";
const ask = (content: unknown, more: object = {}) => ({
  model: "claude-sonnet-4.6",
  messages: [{ role: "user", content }],
  ...more,
});

const counter = startCounter();
const exact = await startProxy({ env: { ANTHROPIC_API_KEY: anthropicKey, DRAGOMAN_ANTHROPIC_API_URL: counter.url } });
const plain = await startProxy({ env: { DRAGOMAN_ANTHROPIC_API_URL: counter.url } });
afterAll(() => Promise.all([exact, plain, counter].map((each) => each[Symbol.asyncDispose]())));

async function count(proxy: RunningProxy, body: unknown, query = "") {
  const response = await proxy.post(path + query, body);
  const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
  return { status: response.status, how: response.headers.get("x-token-count"), tokens };
}

describe("without a key", () => {
  test("the answer is an estimate, marked as one, and nothing leaves the machine", async () => {
    const asked = counter.asked.length;
    const { status, how, tokens } = await count(plain, ask("Hello, how many tokens is this?"));
    expect([status, how]).toEqual([200, "estimate"]);
    expect(tokens).toBeWithin(8, 25);
    expect(counter.asked.length).toBe(asked);
  });

  test("Anthropic's package reads it, for a model of any maker", async () => {
    const client = new Anthropic({ baseURL: plain.url, apiKey: "unused", maxRetries: 0 });
    for (const model of ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview", "claude-from-tomorrow"])
      expect(
        (await client.messages.countTokens({ model, messages: [{ role: "user", content: "Hello" }] })).input_tokens,
      ).toBeGreaterThan(0);
  });

  test("what cannot be read is refused in Anthropic's shape", async () => {
    const model = "claude-sonnet-4.6";
    for (const body of [{ model }, { model, messages: [] }, { messages: [] }, "{", ask([{ type: "text" }])]) {
      const response = await plain.post(path, body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    }
  });
});

test("OpenAI's package counts a responses request, with the items that it names by their ids", async () => {
  const client = new OpenAI({ baseURL: `${plain.url}/v1`, apiKey: "unused", maxRetries: 0 });
  const model = "gpt-5.3-codex";
  const input = "Hello, how many tokens is this?";
  const { object, input_tokens: short } = await client.responses.inputTokens.count({ model, input });
  expect(object).toBe("response.input_tokens");
  expect(short).toBeWithin(8, 25);
  const said = (await client.responses.create({ model, input })).output.find(({ type }) => type === "message")!;
  const references = [
    { type: "item_reference" as const, id: said.id! },
    { role: "user" as const, content: input },
  ];
  const { input_tokens: long } = await client.responses.inputTokens.count({ model, input: references });
  expect(long).toBeGreaterThan(short + 5);
});

describe("tools that the model is to search for", () => {
  const tool = (at: number, more: object = {}) => ({
    name: `mcp__server__look_up_${at}`,
    description: "Looks up one of the many things that this server knows about, and says what it found there. ".repeat(
      5,
    ),
    input_schema: { type: "object", properties: { id: { type: "string", description: "Which thing it is." } } },
    ...more,
  });
  const search = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };
  const tools = (deferred: boolean) => [
    search,
    ...Array.from({ length: 40 }, (_, at) => tool(at, { defer_loading: deferred })),
  ];
  const found = [
    { role: "user", content: "Look." },
    {
      role: "assistant",
      content: [
        { type: "server_tool_use", id: "srvtoolu_1", name: search.name, input: { query: "look" } },
        {
          type: "tool_search_tool_result",
          tool_use_id: "srvtoolu_1",
          content: {
            type: "tool_search_tool_search_result",
            tool_references: [{ type: "tool_reference", tool_name: "mcp__server__look_up_7" }],
          },
        },
      ],
    },
    { role: "user", content: "Go on." },
  ];

  // The last two search themselves, for clients of their own API and for all others.
  test.each(["gpt-5.3-codex", "gemini-3.1-pro-preview", "claude-haiku-4.5", "claude-sonnet-4.6", "gpt-5.4"])(
    "are no part of the prompt of %s until it has found them",
    async (model) => {
      const waiting = await count(plain, { ...ask("Hello"), model, tools: tools(true) });
      const loaded = await count(plain, { ...ask("Hello"), model, tools: tools(false) });
      expect(loaded.tokens).toBeGreaterThan(4_000);
      expect(waiting.tokens).toBeLessThan(300);
      const none = await count(plain, { model, messages: found, tools: tools(true).slice(0, 2) });
      const one = await count(plain, { model, messages: found, tools: tools(true) });
      expect(one.tokens - none.tokens).toBeWithin(90, 200);
    },
  );

  test("are counted in full where they are sent in full", async () => {
    await using off = await startProxy({ config: { toolSearch: "off" } });
    const body = { ...ask("Hello"), model: "gpt-5.3-codex", tools: tools(true) };
    expect((await count(off, body)).tokens).toBeGreaterThan(4_000);
  });
});

describe("with a key", () => {
  test("the answer is Anthropic's own count", async () => {
    const { status, how, tokens } = await count(exact, ask("x".repeat(4000)), "?beta=true");
    expect([status, how]).toEqual([200, "exact"]);
    expect(tokens).toBe(countedTokens);
    expect(counter.asked.at(-1)!.headers).toMatchObject({
      "x-api-key": anthropicKey,
      "anthropic-version": "2023-06-01",
    });
    expect(counter.asked.at(-1)!.headers.authorization).toBeUndefined();
  });

  test("only what the counter takes is sent to it, its model in its own spelling", async () => {
    const body = ask("Hello", {
      system: "Be brief.",
      tools: [{ name: "f", input_schema: { type: "object" } }],
      tool_choice: { type: "auto" },
      thinking: { type: "enabled", budget_tokens: 1024 },
      max_tokens: 10,
      stream: true,
      metadata: { user_id: "secret" },
      temperature: 1,
      stop_sequences: ["x"],
      x_new: 1,
    });
    expect((await count(exact, body)).how).toBe("exact");
    const sent = counter.asked.at(-1)!.body;
    expect(Object.keys(sent).sort()).toEqual(["messages", "model", "system", "thinking", "tool_choice", "tools"]);
    expect(sent).toMatchObject({ model: "claude-sonnet-4-6" });
  });

  test("other makers' models are estimated: the counter knows its own alone", async () => {
    const asked = counter.asked.length;
    expect((await count(exact, ask("Hello", { model: "gpt-5.3-codex" }))).how).toBe("estimate");
    expect(counter.asked.length).toBe(asked);
  });

  test("a key of the config counts before the environment's", async () => {
    await using proxy = await startProxy({
      config: { anthropicApiKey: anthropicKey },
      env: { ANTHROPIC_API_KEY: "sk-ant-old", DRAGOMAN_ANTHROPIC_API_URL: counter.url },
    });
    expect((await count(proxy, ask("Hello"))).how).toBe("exact");
  });

  test.each([
    ["refuses for its rate", 429],
    ["is overloaded", 529],
    ["breaks", 500],
    ["answers with a page", 200],
  ])("when the counter %s, an estimate comes in its place", async (_, answered) => {
    counter.next.push(() => new Response("<html>\n", { status: answered, headers: { "content-type": "text/html" } }));
    const { status, how, tokens } = await count(exact, ask("Hello"));
    expect([status, how]).toEqual([200, "estimate"]);
    expect(tokens).toBeGreaterThan(0);
  });

  test("when the counter hangs, an estimate comes", async () => {
    await count(plain, ask("warm")); // the vocabulary is loaded
    counter.next.push(() => new Promise(() => {}));
    const { status, how } = await count(exact, ask("Hello"));
    expect([status, how]).toEqual([200, "estimate"]);
  });

  test("when its answer trickles in for ever, too", async () => {
    counter.next.push(
      () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              await Bun.sleep(50);
              controller.enqueue(new TextEncoder().encode(" "));
            },
          }),
        ),
    );
    const { status, how } = await count(exact, ask("Hello"));
    expect([status, how]).toEqual([200, "estimate"]);
  });

  test("if the key is wrong or the service does not answer, an estimate comes and the key is in no log line", async () => {
    for (const env of [
      { ANTHROPIC_API_KEY: "sk-ant-wrong-key-0001", DRAGOMAN_ANTHROPIC_API_URL: counter.url },
      { ANTHROPIC_API_KEY: "sk-ant-wrong-key-0001", DRAGOMAN_ANTHROPIC_API_URL: "http://127.0.0.1:9" },
    ]) {
      await using proxy = await startProxy({ env, config: { logLevel: "debug" } });
      expect(await count(proxy, ask("Hello"))).toMatchObject({ status: 200, how: "estimate" });
      expect(proxy.lines.join("\n")).not.toContain("sk-ant-wrong-key-0001");
    }
  });

  test("bursts of 35 at once, beyond the counter's rate, are all answered", async () => {
    const burst = () => Promise.all(Array.from({ length: 35 }, (_, index) => count(exact, ask(`Part ${index}`))));
    const answers = [...(await burst()), ...(await burst()), ...(await burst())];
    expect(answers.every(({ status, tokens }) => status === 200 && tokens > 0)).toBe(true);
    expect(new Set(answers.map(({ how }) => how))).toEqual(new Set(["exact", "estimate"]));
  });
});

describe("by GitHub Copilot", () => {
  const posts = (proxy: RunningProxy) => proxy.demo.journal.filter((seen) => seen.path === path);
  /** Signed in: a count does not wait for that. */
  async function newest(options: { clock?: ProxyOptions["clock"] } = {}) {
    const proxy = await startProxy({ demo: { generation: "C", ...options.clock }, ...options });
    await proxy.post("/v1/messages", { ...ask("Hello"), max_tokens: 100 });
    return proxy;
  }

  test("is exact for a model of the Messages API, and is sent what a reply would be asked with", async () => {
    await using proxy = await newest();
    const body = ask("Hello there", {
      system: [{ type: "text", text: "x-anthropic-billing-header: cc_version=2.1.294;" }],
      max_tokens: 10,
      stream: true,
      thinking: { type: "adaptive", display: "updates" },
      safeguards: [{ type: "dangerous_tool_use" }],
    });
    expect(await count(proxy, body)).toMatchObject({ status: 200, how: "exact" });
    const [seen] = posts(proxy);
    expect(seen!.body).toEqual({
      model: "claude-sonnet-4.6",
      messages: [{ role: "user", content: "Hello there" }],
      thinking: { type: "adaptive", display: "summarized" },
    });
    expect(seen!.headers).toMatchObject({ "x-initiator": "agent" });
    expect((await count(proxy, { ...body, model: "gpt-6-sol" })).how).toBe("estimate");
    expect(posts(proxy).length).toBe(1);
    // A count is no request of the history, and costs nothing.
    expect(proxy.rows().length).toBe(1);
  });

  test("where the endpoint does not exist is tried once a day for each account", async () => {
    let now = Date.now();
    await using proxy = await newest({ clock: { monotonic: () => now } });
    proxy.demo.intercept(path, () => new Response("404 page not found", { status: 404 }));
    for (let turn = 0; turn < 3; turn++) expect((await count(proxy, ask("Hello"))).how).toBe("estimate");
    expect(posts(proxy).length).toBe(1);
    now += 25 * 3_600_000;
    await proxy.post("/v1/messages", { ...ask("Hello"), max_tokens: 100 });
    expect((await count(proxy, ask("Hello"))).how).toBe("exact");
  });

  test("that does not come in time is waited for once, and then not asked for", async () => {
    await using proxy = await newest();
    await count(proxy, ask("warm"));
    proxy.demo.intercept(path, () => new Promise(() => {}), Number.POSITIVE_INFINITY);
    const before = posts(proxy).length;
    const first = await count(proxy, ask("Hello"));
    expect([first.status, first.how]).toEqual([200, "estimate"]);
    expect((await count(proxy, ask("Hello"))).how).toBe("estimate");
    expect(posts(proxy).length).toBe(before + 1);
  });

  test("a request that GitHub refuses to count does not keep it from counting the next one", async () => {
    await using proxy = await newest();
    proxy.demo.intercept(path, () => Response.json({ type: "error", error: { message: "No." } }, { status: 400 }));
    expect((await count(proxy, ask("Hello"))).how).toBe("estimate");
    expect((await count(proxy, ask("Hello"))).how).toBe("exact");
  });

  test("that says the account is suspended stops all further requests", async () => {
    await using proxy = await newest();
    const error = { error: { message: "Your account was suspended for abuse.", code: "account_suspended" } };
    proxy.demo.intercept(path, () => Response.json(error, { status: 403 }));
    expect((await count(proxy, ask("Hello"))).how).toBe("estimate");
    const next = await proxy.post("/v1/messages", { ...ask("Hello"), max_tokens: 100 });
    expect(next.status).toBe(403);
  });
});
