/** Scenario: what stays in a conversation's history, such as calls and their results, must not end it at any upstream. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type OpenAiServer, startOpenAiServer } from "../../support/openai-server";
import { startProvider, type TestProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";

// biome-ignore lint/suspicious/noExplicitAny: requests and replies in four dialects
type Json = any;

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => void proxy.demo.journal.splice(0));

const schema = { type: "object", properties: {} };
const user = { role: "user", content: "Say hello." };

/** The one request that was sent for one of the client's. */
async function sentFor(path: string, body: Json): Promise<Json> {
  const response = await proxy.post(path, body);
  expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 });
  const sent = proxy.demo.journal.map(({ body }) => body as Json).filter((each) => each?.model);
  expect(sent).toHaveLength(1);
  return sent[0];
}

describe("a failed result without content", () => {
  const ask = (model: string, result: Json) => ({
    model,
    max_tokens: 1000,
    tools: [{ name: "look", input_schema: schema }],
    messages: [
      user,
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", is_error: true, ...result }] },
    ],
  });
  const says = { type: "tool_result", content: "The tool failed, and did not say why.", is_error: true };

  test.each([{}, { content: "" }, { content: " \n" }, { content: [] }, { content: [{ type: "text", text: " " }] }])(
    "of Anthropic's API gets a word: %j",
    async (result) => {
      const { messages } = await sentFor("/v1/messages", ask("claude-sonnet-4.6", result));
      expect(messages.at(-1).content[0]).toMatchObject(says);
    },
  );

  test("of Google's gets one", async () => {
    const { messages } = await sentFor("/v1beta/models/claude-sonnet-4.6:generateContent", {
      tools: [{ functionDeclarations: [{ name: "look", parameters: schema }] }],
      contents: [
        { role: "user", parts: [{ text: "Say hello." }] },
        { role: "model", parts: [{ functionCall: { name: "look", args: {} } }] },
        { role: "user", parts: [{ functionResponse: { name: "look", response: { error: "" } } }] },
      ],
    });
    expect(messages.at(-1).content[0]).toMatchObject(says);
  });

  test("of the Responses API gets one", async () => {
    const { messages } = await sentFor("/v1/responses", {
      model: "claude-sonnet-4.6",
      store: false,
      tools: [{ type: "function", name: "look", parameters: schema, strict: false }],
      input: [
        user,
        { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "", status: "incomplete" },
      ],
    });
    expect(messages.at(-1).content[0]).toMatchObject(says);
  });
});

describe("a file in a tool's result", () => {
  const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQ=" };
  const messages = [
    user,
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: {} }] },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          content: [
            { type: "text", text: "Two pages." },
            { type: "document", title: "a.pdf", source: pdf },
          ],
        },
      ],
    },
  ];
  const tools = [{ name: "look", input_schema: schema }];

  test("is a note where the model reads no files", async () => {
    const body = { model: "gemini-3.1-pro-preview", max_tokens: 1000, tools, messages };
    const sent = JSON.stringify((await sentFor("/v1/messages", body)).messages.at(-1));
    expect(sent).toContain("Two pages.");
    expect(sent).toContain("[The file a.pdf (application/pdf), which this model cannot read.]");
    expect(JSON.parse(proxy.rows()[0]!.dropped)).toContain("file");
  });

  test("and a person's own file is refused there", async () => {
    const content = [
      { type: "text", text: "Read it." },
      { type: "document", source: pdf },
    ];
    const body = { model: "gemini-3.1-pro-preview", max_tokens: 1000, messages: [{ role: "user", content }] };
    const response = await proxy.post("/v1/messages", body);
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("reads no files")]);
  });
});

describe("an image is of the type of its bytes, whatever it says", () => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwc=";

  test.each([
    ["image/jpeg", png, "image/png"],
    ["application/octet-stream", png, "image/png"],
    ["image/x-png", png, "image/png"],
    ["image/png", jpeg, "image/jpeg"],
    ["image/png", png, "image/png"],
  ])("%s", async (said, data, type) => {
    const url = `data:${said};base64,${data}`;
    const input = [{ role: "user", content: [{ type: "input_image", image_url: url }] }];
    const sent = await sentFor("/v1/responses", { model: "claude-sonnet-4.6", store: false, input });
    expect(sent.messages[0].content[0].source).toEqual({ type: "base64", media_type: type, data });
    proxy.demo.journal.length = 0;
    const contents = [{ role: "user", parts: [{ text: "What is it?" }, { inlineData: { mimeType: said, data } }] }];
    if (said.startsWith("image/")) {
      const { messages } = await sentFor("/v1beta/models/claude-sonnet-4.6:generateContent", { contents });
      expect(messages[0].content.at(-1).source.media_type).toBe(type);
    }
  });
});

describe("a call's id that is too long", () => {
  const id = `call_${"x".repeat(80)}`;

  test("is shortened from chat to chat, in the call and its result alike", async () => {
    const call = (each: string) => ({ id: each, type: "function", function: { name: "look", arguments: "{}" } });
    const { messages } = await sentFor("/v1/chat/completions", {
      model: "gpt-5.2",
      tools: [{ type: "function", function: { name: "look", parameters: schema } }],
      messages: [
        user,
        { role: "assistant", content: null, tool_calls: [call(id), call(`${id}2`)] },
        { role: "tool", tool_call_id: id, content: "A lake." },
        { role: "tool", tool_call_id: `${id}2`, content: "A hill." },
      ],
    });
    const [first, second] = messages[1].tool_calls.map((each: Json) => each.id);
    expect([first.length, second.length]).toEqual([40, 40]);
    expect(first).not.toBe(second);
    expect([messages[2].tool_call_id, messages[3].tool_call_id]).toEqual([first, second]);
  });

  test.each(["function_call", "custom_tool_call"])("is shortened from responses to responses: %s", async (type) => {
    const said = type === "function_call" ? { arguments: "{}" } : { input: "x" };
    const { input } = await sentFor("/v1/responses", {
      model: "gpt-5.3-codex",
      store: false,
      input: [
        user,
        { type, call_id: id, name: "look", ...said },
        { type: `${type}_output`, call_id: id, output: "A lake." },
      ],
    });
    expect(input[1].call_id).toHaveLength(64);
    expect(input[2].call_id).toBe(input[1].call_id);
  });
});

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
