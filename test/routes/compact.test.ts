/** Scenario: compaction: the endpoint that OpenAI's SDK calls, and the trigger that Codex sends with its conversation. */
import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { openFrames } from "../support/frame-client";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("compaction");

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const says = (role: "user" | "assistant", content: string) => ({ type: "message" as const, role, content });
const conversation = [says("user", "My name is Ada."), says("assistant", "Hello Ada."), says("user", "And yours?")];

test.each(["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-2.5-pro"])(
  "a trigger in the input is answered with one compaction item of %s over a WebSocket",
  async (model) => {
    await using client = await openFrames(proxy.url);
    const input = [...conversation, { type: "compaction_trigger" }];
    const events = await client.ask({ model, store: false, input });
    const done = events.filter(({ type }) => type === "response.output_item.done");
    expect(done).toMatchObject([
      { item: { type: "compaction", encrypted_content: expect.stringMatching(/^dragoman\.summary\./) } },
    ]);
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { output: [{ type: "compaction" }] } });
    expect(events.some(({ type }) => type.endsWith(".delta"))).toBe(false);
  },
);

test("OpenAI's own client compacts a conversation and goes on with it", async () => {
  const openai = new OpenAI({ apiKey: "none", baseURL: `${proxy.url}/v1`, maxRetries: 0 });
  const { output } = await openai.responses.compact({ model: "gpt-5.3-codex", input: conversation });
  const input = [...output, says("user", "And now?")] as never;
  const reply = await openai.responses.create({ model: "gpt-5.3-codex", input, store: false });
  expect(reply.output_text).toStartWith("DEMO");
});
