/** Scenario: Chat completions as the official package speaks them, against the scripted upstream. */
import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const proxy = await startProxy();
const client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused", maxRetries: 0 });
afterAll(() => proxy[Symbol.asyncDispose]());

const ask = (content: string) => [{ role: "user" as const, content }];

/** One model of each kind of voice, and of each billing. */
const models = ["gpt-4.1", "gpt-5-mini", "claude-sonnet-4.6", "gemini-3.1-pro-preview"];

test.each(models)(
  "%s: a full answer says what it is, and a stream says the same, without usage where none is asked for",
  async (model) => {
    const asked = { model, messages: ask("Say hello.") };
    const answer = await client.chat.completions.create(asked);
    expect(answer).toMatchObject({ object: "chat.completion", model, choices: [{ index: 0, finish_reason: "stop" }] });
    expect(answer.created).toBeGreaterThan(0);
    expect(answer.choices[0]!.message).not.toHaveProperty("padding");
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
      // Some models begin with an empty chunk of content filters.
      if (chunk.choices.length > 0) expect(chunk).toMatchObject({ object: "chat.completion.chunk", model });
      expect(chunk.choices.length > 0 || chunk.usage == null).toBe(true);
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(answer.choices[0]!.message.content!);
  },
);

test("an aborted stream throws the package's own abort and the upstream is let go", async () => {
  const controller = new AbortController();
  const stream = await client.chat.completions.create(
    { model: "gpt-5-mini", messages: ask("[demo: silence 20] Hello"), stream: true },
    { signal: controller.signal },
  );
  const read = async () => {
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) controller.abort();
  };
  await read().catch(() => {});
  await until(() => proxy.demo.open === 0, "the upstream's connection is closed");
  expect(proxy.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
});

test("404 for an unknown model, with the nearest names", async () => {
  const failure = await client.chat.completions
    .create({ model: "gpt-5-mnii", messages: ask("Hi") })
    .catch((thrown) => thrown);
  expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
  expect(failure).toMatchObject({ code: "model_not_found", param: "model" });
  expect(failure.message).toContain("`gpt-5-mini`");
});

test("raw curl gets the same stream as OpenAI's SDK", async () => {
  const body = JSON.stringify({ model: "claude-sonnet-4.6", stream: true, messages: ask("Hello") });
  const curl = Bun.spawn([
    "curl",
    "-sN",
    `${proxy.url}/v1/chat/completions`,
    "-H",
    "content-type: application/json",
    "-d",
    body,
  ]);
  const text = await new Response(curl.stdout).text();
  expect(await curl.exited).toBe(0);
  expect(text).toStartWith("data: {");
  expect(text).toEndWith("data: [DONE]\n\n");
});
