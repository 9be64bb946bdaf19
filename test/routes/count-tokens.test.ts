/**
 * Scenario: `POST /v1/messages/count_tokens`, and `/v1/responses/input_tokens` of OpenAI's: exact where Anthropic's counter may be
 * asked, else an estimate, and never a failure.
 */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type RunningProxy, startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("counts");

const plain = await startProxy();
afterAll(() => plain[Symbol.asyncDispose]());

const ask = (content: string) => ({ model: "claude-sonnet-4.6", messages: [{ role: "user", content }] });

async function count(proxy: RunningProxy, body: unknown) {
  const response = await proxy.post("/v1/messages/count_tokens", body);
  const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
  return { status: response.status, how: response.headers.get("x-token-count"), tokens };
}

test("Anthropic's package reads an estimate, for a model of any maker", async () => {
  const client = new Anthropic({ baseURL: plain.url, apiKey: "unused", maxRetries: 0 });
  for (const model of ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview", "claude-from-tomorrow"])
    expect(
      (await client.messages.countTokens({ model, messages: [{ role: "user", content: "Hello" }] })).input_tokens,
    ).toBeGreaterThan(0);
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

/** A proxy with a key for Anthropic's counter, which answers with this. */
async function startCounted(answer: () => Response) {
  const counter = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: answer });
  const env = { ANTHROPIC_API_KEY: "sk-ant-demo-0000", DRAGOMAN_ANTHROPIC_API_URL: counter.url.origin };
  const proxy = await startProxy({ env });
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await counter.stop(true);
    },
  };
}

test("when the answer of Anthropic's counter trickles in for ever, an estimate comes", async () => {
  const pull = async (controller: ReadableStreamDefaultController) => {
    await Bun.sleep(50);
    controller.enqueue(new TextEncoder().encode(" "));
  };
  await using counted = await startCounted(() => new Response(new ReadableStream({ pull })));
  expect(await count(counted.proxy, ask("Hello"))).toMatchObject({ status: 200, how: "estimate" });
});

test("bursts of 35 at once, beyond the rate of Anthropic's counter, are all answered", async () => {
  let left = 100;
  await using counted = await startCounted(() =>
    left-- > 0 ? Response.json({ input_tokens: 1234 }) : new Response("", { status: 429 }),
  );
  const burst = () => Promise.all(Array.from({ length: 35 }, (_, at) => count(counted.proxy, ask(`Part ${at}`))));
  const answers = [...(await burst()), ...(await burst()), ...(await burst())];
  expect(answers.every(({ status, tokens }) => status === 200 && tokens > 0)).toBe(true);
  // A count that comes too late is an estimate, too.
  expect(new Set(answers.map(({ how }) => how))).toEqual(new Set(["exact", "estimate"]));
});
