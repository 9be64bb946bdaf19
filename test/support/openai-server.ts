/**
 * An OpenAI-compatible server that is not ours: aimock (npm `@copilotkit/aimock`), with one conversation in it. It serves
 * chat completions, responses, embeddings and a model list, and keeps what it was sent.
 */
import { type JournalEntry, LLMock } from "@copilotkit/aimock";

export interface OpenAiServer extends AsyncDisposable {
  /** Ends in `/v1`, as its own clients want it. */
  url: string;
  /** The same with a list as OpenRouter has it. */
  openRouterUrl: string;
  /** The model calls that it was sent, in order. */
  calls(): JournalEntry[];
}

export const helloReply = "Good day from the provider.";
export const weatherReply = "18 degrees in Paris.";

/** @param key The one key that it takes; it takes none if this is missing. */
export async function startOpenAiServer(key?: string): Promise<OpenAiServer> {
  const mock = new LLMock({
    host: "127.0.0.1",
    port: 0,
    logLevel: "silent",
    ...(key === undefined ? {} : { auth: { apiKeys: [key] } }),
  });
  const usage = { prompt_tokens: 40, completion_tokens: 8, total_tokens: 48 };
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: weatherReply, usage });
  mock.on(
    { userMessage: "weather" },
    { toolCalls: [{ id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' }], usage },
  );
  mock.onMessage(/./, { content: helloReply, usage });
  // Its list has the models that its answers name.
  mock.on({ model: "gpt-small" }, { content: helloReply, usage });
  mock.onEmbedding(/./, { embedding: [0.25, -0.5, 1] });
  await mock.start();
  return {
    url: `${mock.url}/v1`,
    openRouterUrl: `${mock.url}/api/v1`,
    calls: () => mock.getRequests().filter(({ method }) => method === "POST"),
    [Symbol.asyncDispose]: () => mock.stop(),
  };
}
