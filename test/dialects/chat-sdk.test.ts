/** Streams of Copilot's that OpenAI's own package cannot read as they are. */
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { chat } from "../../src/dialects/chat/codec";
import { readSse } from "../../src/net/stream/sse";
import { run } from "../../src/net/stream/stream";
import { eventStream } from "../support/event-stream";
import { bytesAt, wire, written } from "../support/streams";

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
      chat.fixStream({ model: "gpt-5-mini", usage: true, replies: 1 }, () => {}),
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

test("a stream without a role is refused by OpenAI's helper", async () => {
  await expect(readBySdk(bytesAt("chat-no-role", "chat.stream.txt"))).rejects.toThrow("missing role for choice 0");
});
