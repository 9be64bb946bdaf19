/** Rows: LangChain's two packages: a streamed tool loop on a model of every maker. */
import { afterAll, describe, expect, test } from "bun:test";
import { ChatAnthropic } from "@langchain/anthropic";
import { type AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const openai = () => ({ apiKey: "unused", maxRetries: 0, configuration: { baseURL: `${proxy.url}/v1` } });

const clients = {
  "ChatOpenAI, chat": (model: string) => new ChatOpenAI({ model, ...openai() }),
  "ChatOpenAI, responses": (model: string) => new ChatOpenAI({ model, ...openai(), useResponsesApi: true }),
  ChatAnthropic: (model: string) =>
    new ChatAnthropic({ model, anthropicApiUrl: proxy.url, apiKey: "unused", maxRetries: 0, maxTokens: 16_384 }),
};
const models = ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"];

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

describe.each(Object.entries(clients))("%s", (_, client) => {
  test.each(models)("LangChain runs a streamed tool loop on %s", async (model) => {
    const bound = client(model).bindTools([weather]);
    const messages = [
      new SystemMessage("Be brief."),
      new HumanMessage("What is the weather in two cities, in parallel?"),
    ];
    const asked = await gather(await bound.stream(messages));
    const calls = asked.tool_calls ?? [];
    expect(calls.map(({ name, args }) => [name, args])).toEqual([
      ["get_weather", { city: "Paris" }],
      ["get_weather", { city: "Tokyo" }],
    ]);
    // ChatAnthropic reads the input's tokens in `message_start` alone, where other makers' models do not tell them yet.
    expect(asked.usage_metadata?.output_tokens).toBeGreaterThan(0);
    const results = calls.map(
      ({ id, name, args }) => new ToolMessage({ tool_call_id: id!, name, content: `18 degrees in ${args.city}` }),
    );
    const final = await gather(await bound.stream([...messages, asked, ...results]));
    expect(final.text).toContain("18 degrees in Paris | 18 degrees in Tokyo");
    expect(final.tool_calls ?? []).toEqual([]);
  });

  test.each(models)("LangChain gets a full answer of %s", async (model) => {
    const answer = await client(model).invoke([new HumanMessage("Say hello.")]);
    expect(answer.text).toContain("DEMO: Hello!");
  });
});

// Its responses client takes `response.failed`, which is what others need, for an empty answer.
test.each(["ChatOpenAI, chat", "ChatAnthropic"] as const)(
  "LangChain is told of a broken stream by %s",
  async (name) => {
    const broken = clients[name]("claude-sonnet-4.6").stream([new HumanMessage("[demo: error-event] Say hello.")]);
    await expect(broken.then(gather)).rejects.toThrow();
  },
);

test("OpenAIEmbeddings gets its vectors", async () => {
  const embeddings = new OpenAIEmbeddings({ model: "text-embedding-3-small", ...openai() });
  const vectors = await embeddings.embedDocuments(["one", "two"]);
  expect(vectors).toHaveLength(2);
  expect(vectors[0]!.length).toBeGreaterThan(10);
});

/** All chunks of a stream as one message. */
async function gather(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | undefined;
  for await (const chunk of stream) whole = whole ? whole.concat(chunk) : chunk;
  return whole!;
}
