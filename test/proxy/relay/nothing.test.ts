/** Rows: `max_tokens: 0`: Anthropic's way to warm the cache, whatever model is asked. */
import { expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { codecs } from "../../../src/dialects/codecs";
import { readSse } from "../../../src/lib/net/stream/sse";
import { run } from "../../../src/lib/net/stream/stream";
import { checkMessagesStream } from "../../support/grammar-messages";
import { startProxy } from "../../support/proxy";

const body = { max_tokens: 0, messages: [{ role: "user" as const, content: "Hi" }] };

test.each(["gpt-5-mini", "gpt-5.3-codex", "gemini-3.1-pro-preview"])(
  "a request for no tokens of %s is answered with nothing, and nothing is sent",
  async (model) => {
    await using proxy = await startProxy();
    const client = new Anthropic({ baseURL: proxy.url, apiKey: "unused", maxRetries: 0 });
    const answer = await client.messages.create({ ...body, model });
    expect(answer).toMatchObject({
      content: [],
      stop_reason: "max_tokens",
      usage: { input_tokens: 0, output_tokens: 0 },
    });
    const streamed = await proxy.post("/v1/messages", { ...body, model, stream: true });
    const frames = run(readSse, [await streamed.bytes()]);
    checkMessagesStream(frames, codecs.messages.decodeRequest({ ...body, model }));
    expect(frames.at(-2)?.data).toContain('"stop_reason":"max_tokens"');
    expect(proxy.demo.journal.filter(({ method }) => method === "POST")).toEqual([]);
    for (const row of proxy.rows())
      expect(row).toMatchObject({ http_status: 200, initiator: "agent", cost: 0, attempts: "[]" });
  },
);
