/** Scenario: Messages, as Claude Code and Anthropic's package speak them, on models of every upstream dialect. */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { startProxy } from "../support/proxy";
import { pixel } from "../support/scenarios";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** A model of each upstream dialect: messages, responses, chat. */
const models = ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"];
const path = "/v1/messages";

const ask = (model: string, content: unknown = "Say hello.", more: object = {}) => ({
  model,
  max_tokens: 1000,
  messages: [{ role: "user", content }],
  ...more,
});

// biome-ignore lint/suspicious/noExplicitAny: what upstreams were sent, in three dialects
type Json = any;

async function post(body: object) {
  const response = await proxy.post(path, body);
  const json: Json = await response.json();
  return { status: response.status, json, text: json.content?.map((block: Json) => block.text ?? "").join("") };
}

const sent = (): Json => proxy.demo.journal.at(-1)!.body;
const row = () => proxy.rows()[0]!;

test("a model that offers its own messages endpoint is asked there, byte for byte", async () => {
  const text = `{"max_tokens":1000,  "model":"claude-sonnet-4.6","messages":[{"role":"user","content":"\\u0048i"}]}`;
  await proxy.post(path, text);
  expect(proxy.demo.journal.at(-1)!.path).toBe("/v1/messages");
  expect(Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString()).toBe(text);
});

describe.each(models)("on %s", (model) => {
  test("a long answer that is not streamed comes whole, though the upstream gives such only as a stream", async () => {
    const { status, text, json } = await post(ask(model, "[demo: long 50]", { max_tokens: 64_000 }));
    expect(status).toBe(200);
    expect(text).toContain("Line 50 of 50");
    expect(json).toMatchObject({ type: "message", role: "assistant", stop_reason: "end_turn", model });
    expect(json.usage.output_tokens).toBeGreaterThan(100);
    expect(row()).toMatchObject({ stream: 0, http_status: 200 });
  });

  test("nothing that clients newly send is a reason to refuse, and Claude Code's billing line goes to no model", async () => {
    const tool = {
      name: "get_weather",
      description: "The weather",
      eager_input_streaming: true,
      defer_loading: false,
      input_examples: [{ city: "Rome" }],
      strict: true,
      cache_control: { type: "ephemeral", ttl: "1h", scope: "global" },
      input_schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
      },
    };
    const body = ask(model, "What is the weather in Paris?", {
      max_tokens: 32_000,
      stream: true,
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329.abc; cc_entrypoint=sdk-cli;" },
        { type: "text", text: "Be brief.", cache_control: { type: "ephemeral", scope: "global" } },
      ],
      tools: [tool],
      tool_choice: { type: "auto", disable_parallel_tool_use: false },
      thinking: { type: "enabled", budget_tokens: 2000, display: "summarized" },
      output_config: { effort: "xhigh" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      metadata: { user_id: '{"device_id":"d","session_id":"s"}', other: 1 },
      service_tier: "auto",
      container: null,
      mcp_servers: [],
      inference_geo: "eu",
      top_k: 5,
      temperature: 1,
      x_brand_new: { a: 1 },
    });
    const response = await proxy.post(path, body, {
      headers: { "anthropic-beta": "claude-code-20250219,brand-new-2099-01-01" },
    });
    const text = await response.text();
    expect([response.status, text.includes('"get_weather"')]).toEqual([200, true]);
    expect(JSON.stringify(sent())).not.toContain("x-anthropic-billing-header");
    expect(JSON.stringify(sent())).toContain("Be brief.");
  });

  test("pictures and documents reach the model, or the request is refused in a sentence", async () => {
    const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
    expect((await post(ask(model, [picture, { type: "text", text: "What is this?" }]))).status).toBe(200);
    expect(JSON.stringify(sent())).toContain(pixel);
    const note = { type: "document", source: { type: "text", media_type: "text/plain", data: "the secret word" } };
    expect((await post(ask(model, [note, { type: "text", text: "What is this?" }]))).status).toBe(200);
    expect(JSON.stringify(sent())).toContain("the secret word");
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } };
    const { status, json } = await post(ask(model, [pdf, { type: "text", text: "What is this?" }]));
    if (status === 200) expect(JSON.stringify(sent())).toContain("JVBERi0=");
    else expect([status, json.error.type]).toEqual([400, "invalid_request_error"]);
  });
});

test("the package's own errors come of ours", async () => {
  const client = new Anthropic({ baseURL: proxy.url, apiKey: "unused", maxRetries: 0 });
  const failureOf = (directive: string, stream: boolean) =>
    client.messages
      .create({
        model: "claude-sonnet-4.6",
        max_tokens: 100,
        stream,
        messages: [{ role: "user", content: `${directive} Hi` }],
      })
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
  for (const [directive, type] of [
    ["[demo: 400-off-topic]", Anthropic.BadRequestError],
    ["[demo: 404]", Anthropic.NotFoundError],
    ["[demo: 500]", Anthropic.InternalServerError],
    ["[demo: 529]", Anthropic.InternalServerError],
  ] as const) {
    expect(await failureOf(directive, true)).toBeInstanceOf(type);
    expect(await failureOf(directive, false)).toBeInstanceOf(type);
  }
});
