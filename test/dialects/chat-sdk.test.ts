/** Pairs: streams of Copilot's that OpenAI's own package cannot read as they are. */
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { chat } from "../../src/dialects/chat/codec";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { eventStream } from "../support/event-stream";
import { bytesAt, collects, passes, wire, written } from "../support/streams";

const question = { model: "gpt-5-mini", messages: [{ role: "user" as const, content: "Hi" }] };

async function readBySdk(bytes: Uint8Array) {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => eventStream(bytes.slice()),
  });
  const client = new OpenAI({ baseURL: `${server.url}v1`, apiKey: "unused", maxRetries: 0 });
  return await client.chat.completions.stream({ ...question, stream: true }).finalChatCompletion();
}

test.each(["chat-no-role", "chat-empty-object"])(
  "a stream of %s is read by OpenAI's helper once it is fixed",
  async (folder) => {
    const stream = bytesAt(folder, "chat.stream.txt");
    const fixed = written(
      passes(chat, { model: "gpt-5-mini", usage: true, replies: 1 }, () => {}),
      run(readSse, [stream]),
    );
    const { object, choices } = await readBySdk(wire(fixed));
    expect(object).toBe("chat.completion");
    expect(choices[0]?.message).toMatchObject({
      role: "assistant",
      content: expect.stringMatching(/^(?:Hi\.|I will look\.)$/),
    });
  },
);

test("a stream that is gathered has the older function call, and the sound, whole", async () => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    data: JSON.stringify({
      ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-5-mini" },
      choices: [{ index: 0, delta, finish_reason }],
    }),
  });
  const frames = [
    chunk({ role: "assistant", content: null, function_call: { name: "look", arguments: "" } }),
    chunk({ function_call: { arguments: '{"at"' } }),
    chunk({ function_call: { arguments: ":1}" } }),
    chunk({ audio: { id: "a", transcript: "Hi ", data: "AA" } }),
    chunk({ audio: { transcript: "there.", data: "BB" } }),
    chunk({ audio: { expires_at: 5 } }, "stop"),
    // Of what does not come in pieces the last value counts, and nothing takes it away.
    chunk({}, "function_call"),
    chunk({}),
    { data: "[DONE]" },
  ];
  const collector = collects(chat, () => {});
  for (const frame of run(readSse, [wire(frames)])) collector.push(frame);
  collector.end();
  const [choice] = collector.body().choices as { message: { function_call: object }; finish_reason: string }[];
  const { choices } = await readBySdk(wire(frames));
  expect(choice!.message.function_call).toEqual({ name: "look", arguments: '{"at":1}' });
  expect(choices[0]!.message.function_call).toEqual({ name: "look", arguments: '{"at":1}' });
  expect([choice!.finish_reason, choices[0]!.finish_reason]).toEqual(["function_call", "function_call"]);
  expect(choice!.message).toMatchObject({ audio: { id: "a", transcript: "Hi there.", data: "AABB", expires_at: 5 } });
});

test("a stream without a role is refused by OpenAI's helper", async () => {
  await expect(readBySdk(bytesAt("chat-no-role", "chat.stream.txt"))).rejects.toThrow("missing role for choice 0");
});
