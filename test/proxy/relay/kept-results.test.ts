/** Scenario: what stays in a conversation's history, such as calls and their results, must not end it at any upstream. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Json } from "../../support/json";
import { type OpenAiServer, startOpenAiServer } from "../../support/openai-server";
import { startProvider, type TestProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";

const user = { role: "user", content: "Say hello." };

describe("what another upstream has left goes to a provider in a form that it takes", () => {
  const id = `call_${"x".repeat(80)}`;
  let openai: OpenAiServer;
  let anthropic: TestProvider;
  let own: Awaited<ReturnType<typeof startProxy>>;
  beforeAll(async () => {
    openai = await startOpenAiServer();
    anthropic = startProvider({ key: "pk-0123456789", auth: "x-api-key" });
    own = await startProxy({
      config: {
        providers: {
          chat: { type: "chat", baseUrl: openai.url },
          responses: { type: "responses", baseUrl: openai.url },
          messages: { type: "messages", baseUrl: anthropic.url, apiKey: "pk-0123456789" },
        },
      },
    });
  });
  afterAll(async () => {
    for (const each of [own, openai, anthropic]) await each[Symbol.asyncDispose]();
  });

  const send = async (path: string, body: Json) => {
    const response = await own.post(path, body);
    expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 });
    return openai.calls().at(-1)?.body as Json;
  };

  test("chat: ids that are too long", async () => {
    const { messages } = await send("/v1/chat/completions", {
      model: "chat/gpt-small",
      messages: [
        user,
        { role: "assistant", tool_calls: [{ id, type: "function", function: { name: "look", arguments: "{}" } }] },
        { role: "tool", tool_call_id: id, content: "A lake." },
      ],
    });
    expect(messages[1].tool_calls[0].id).toHaveLength(40);
    expect(messages[2].tool_call_id).toBe(messages[1].tool_calls[0].id);
  });

  test("responses: ids that are too long", async () => {
    await send("/v1/responses", {
      model: "responses/gpt-small",
      input: [
        user,
        { type: "function_call", call_id: id, name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: id, output: "A lake." },
      ],
    });
    expect(JSON.parse(own.rows()[0]!.fixups)).toContain("call-ids");
  });

  test("messages: ids with other characters, and a failed result that says nothing", async () => {
    await send("/v1/messages", {
      model: "messages/sonnet-large",
      max_tokens: 99,
      messages: [
        user,
        { role: "assistant", content: [{ type: "tool_use", id: "look:1", name: "look", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "look:1", is_error: true, content: "" }] },
      ],
    });
    const { messages } = JSON.parse(anthropic.seen.at(-1)!.body) as Json;
    const [call] = messages[1].content;
    expect(call.id).toMatch(/^[\w-]+$/);
    expect(messages[2].content[0]).toMatchObject({
      tool_use_id: call.id,
      content: "The tool failed, and did not say why.",
    });
  });
});
