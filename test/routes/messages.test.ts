/** Scenario: Messages, as Claude Code and Anthropic's package speak them, on models of every upstream dialect. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

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
});
