/** Replies that clients send back, by the packages that do it: what dragoman made of them must not reach an upstream. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { APICallError, generateText, type ModelMessage } from "ai";
import { type RunningProxy, startProxy } from "../support/proxy";

// What it says about models it does not know is of no use here.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy();
});
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => void proxy.demo.journal.splice(0));

/** The last request that a model got. */
const lastSent = (): string =>
  JSON.stringify(proxy.demo.journal.findLast(({ body }) => (body as { model?: unknown } | null)?.model)!.body);

describe("with @ai-sdk/openai", () => {
  const secondTurn = async (model: string, options: { store?: boolean; reasoningEffort?: string } = {}) => {
    const provider = createOpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused" });
    const messages: ModelMessage[] = [{ role: "user", content: "Say hello." }];
    const common = { model: provider(model), providerOptions: { openai: options }, maxRetries: 0 };
    const first = await generateText({ ...common, messages });
    messages.push(...first.response.messages, { role: "user", content: "What did you say?" });
    await generateText({ ...common, messages });
    return first.text;
  };

  test.each([
    ["claude-sonnet-4.6", {}],
    ["gemini-3.1-pro-preview", {}],
    ["gpt-5.3-codex", { reasoningEffort: "medium" }],
  ])(
    "an answer of %s that comes back by its id only, as at the package's defaults, is refused with what to set",
    async (model, options) => {
      const thrown = await secondTurn(model, options).catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(APICallError);
      const { statusCode, message } = thrown as APICallError;
      expect([statusCode, message]).toEqual([400, expect.stringContaining("`store: false`")]);
      expect(JSON.stringify(proxy.demo.journal.map(({ body }) => body))).not.toContain("What did you say?");
    },
  );

  test.each(["claude-sonnet-4.6", "gemini-3.1-pro-preview", "gpt-5.3-codex", "gpt-5-mini"])(
    "an answer of %s comes back in full, and reaches the model, with `store: false`",
    async (model) => {
      const said = await secondTurn(model, { store: false });
      expect(lastSent()).toContain(JSON.stringify(said).slice(1, -1));
    },
  );
});

describe("with Anthropic's SDK", () => {
  test.each(["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"])(
    "a reply that cites a search comes back without the citations, to %s",
    async (model) => {
      const client = new Anthropic({ baseURL: proxy.url, apiKey: "unused", maxRetries: 0 });
      const asked: Anthropic.MessageParam = { role: "user", content: "Search the web for red pandas." };
      const reply = await client.messages.create({
        model: "claude-sonnet-4.6",
        max_tokens: 4000,
        messages: [asked],
        tools: [{ type: "web_search_20250305", name: "web_search" }],
      });
      expect(JSON.stringify(reply.content)).toContain('"encrypted_index":"dragoman.');
      for (const tools of [undefined, [{ type: "web_search_20250305" as const, name: "web_search" as const }]]) {
        const messages: Anthropic.MessageParam[] = [
          asked,
          { role: "assistant", content: reply.content },
          { role: "user", content: "Thank you." },
        ];
        await client.messages.create({ model, max_tokens: 4000, messages, ...(tools ? { tools } : {}) });
        expect(lastSent()).toContain("Thank you.");
        expect(lastSent()).not.toContain("dragoman");
      }
    },
  );

  test("citations that stay when the client has left out the search itself do not reach Claude either", async () => {
    const client = new Anthropic({ baseURL: proxy.url, apiKey: "unused", maxRetries: 0 });
    const located = { type: "char_location", cited_text: "It is red.", document_index: 0, document_title: null };
    const citations = [
      {
        type: "web_search_result_location",
        url: "https://a.example/",
        title: "A",
        encrypted_index: "EpIB",
        cited_text: "",
      },
      { ...located, start_char_index: 0, end_char_index: 10, file_id: null },
    ] as Anthropic.TextCitationParam[];
    const messages: Anthropic.MessageParam[] = [
      { role: "user", content: "Say hello." },
      { role: "assistant", content: [{ type: "text", text: "It is red.", citations }] },
      { role: "user", content: "Thank you." },
    ];
    await client.messages.create({ model: "claude-sonnet-4.6", max_tokens: 4000, messages });
    expect(lastSent()).toContain("It is red.");
    expect(lastSent()).not.toContain("citations");
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("lost-citations");
  });
});
