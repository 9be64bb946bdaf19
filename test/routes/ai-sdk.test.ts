/** Rows: Vercel's `ai` with each of its providers: a streamed tool loop on a model of every maker. */
import { afterAll, describe, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, type LanguageModel, Output, streamText, tool } from "ai";
import { startProxy } from "../support/proxy";

// What it says about models it does not know is of no use here.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** How a program of somebody else's would be set up: the address and any key. */
const providers: Record<string, (model: string) => LanguageModel> = {
  "@ai-sdk/openai": (model) => createOpenAI(at())(model),
  "@ai-sdk/openai, chat": (model) => createOpenAI(at()).chat(model),
  "@ai-sdk/openai-compatible": (model) =>
    createOpenAICompatible({ name: "dragoman", includeUsage: true, supportsStructuredOutputs: true, ...at() })(model),
  "@ai-sdk/anthropic": (model) => createAnthropic(at())(model),
};
/** Without it, as by default, the OpenAI provider sends the ids of what was answered in place of the items. */
const withItems = { openai: { store: false } };
const at = () => ({ baseURL: `${proxy.url}/v1`, apiKey: "unused" });

const models = ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"];

const weather = tool({
  description: "The weather in a city",
  inputSchema: jsonSchema<{ city: string }>({
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  }),
  execute: async ({ city }) => `18 degrees in ${city}`,
});

describe.each([
  ...Object.entries(providers).map(([name, provider]) => [name, provider, {}] as const),
  ["@ai-sdk/openai, store: false", providers["@ai-sdk/openai"]!, withItems] as const,
])("%s", (_, provider, providerOptions) => {
  test.each(models)("the AI SDK runs a streamed tool loop on %s", async (model) => {
    const failures: unknown[] = [];
    const result = streamText({
      model: provider(model),
      prompt: "What is the weather in two cities, in parallel?",
      tools: { get_weather: weather },
      stopWhen: isStepCount(4),
      providerOptions,
      maxRetries: 0,
      onError: ({ error }) => void failures.push(error),
    });
    const text = await result.text;
    expect(failures).toEqual([]);
    expect(text).toContain("18 degrees in Paris | 18 degrees in Tokyo");
    const steps = await result.steps;
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(steps[0]!.toolCalls.map(({ input }) => input)).toEqual([{ city: "Paris" }, { city: "Tokyo" }]);
    expect((await result.usage).inputTokens).toBeGreaterThan(0);
    expect((await result.usage).outputTokens).toBeGreaterThan(0);
  });

  test.each(models)("the AI SDK gets a full answer of %s", async (model) => {
    const { text, finishReason, usage } = await generateText({
      model: provider(model),
      system: "Be brief.",
      prompt: "Say hello.",
      maxRetries: 0,
    });
    expect(text).toContain("DEMO: Hello!");
    expect(finishReason).toBe("stop");
    expect(usage.totalTokens).toBeGreaterThan(0);
  });

  test("the AI SDK gets an object of a schema", async () => {
    const { output } = await generateText({
      model: provider("gpt-5.3-codex"),
      prompt: "Which city?",
      output: Output.object({
        schema: jsonSchema<{ city: string }>({
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
          additionalProperties: false,
        }),
      }),
      maxRetries: 0,
    });
    expect(output).toEqual({ city: "Paris" });
  });

  test("the AI SDK gets an error for a broken stream, never an answer", async () => {
    const failures: unknown[] = [];
    const result = streamText({
      model: provider("claude-sonnet-4.6"),
      prompt: "[demo: cut 4] Say hello.",
      maxRetries: 0,
      onError: ({ error }) => void failures.push(error),
    });
    await result.consumeStream();
    expect(failures).not.toEqual([]);
    expect(await Promise.resolve(result.finishReason).catch(() => "error")).not.toBe("stop");
  });
});

test("thinking and its proof survive the loop of @ai-sdk/anthropic on every maker's model", async () => {
  for (const model of models) {
    const result = streamText({
      model: createAnthropic(at())(model),
      prompt: "What is the weather in Paris?",
      tools: { get_weather: weather },
      stopWhen: isStepCount(4),
      maxRetries: 0,
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } } },
    });
    expect(await result.text).toContain("18 degrees in Paris");
    expect((await result.steps)[0]!.reasoningText).toContain("A demo can only follow its script.");
    expect(JSON.parse(proxy.rows()[0]!.dropped)).not.toContain("thinking");
    const sent = JSON.stringify(proxy.demo.journal.at(-1)!.body);
    expect(sent).toMatch(/"(signature|encrypted_content|reasoning_opaque)":"[^"]{20}/);
  }
});
