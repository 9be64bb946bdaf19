/** Scenario: Chat completions as the official package speaks them, against the scripted upstream. */
import { afterAll, describe, expect, test } from "bun:test";
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

describe("errors arrive as the package's own types, with the upstream's words", () => {
  test.each([
    ["[demo: 400-field]", OpenAI.BadRequestError, /Extra inputs are not permitted/],
    ["[demo: 404]", OpenAI.NotFoundError, /./],
    ["[demo: 429]", OpenAI.RateLimitError, /./],
    ["[demo: 500]", OpenAI.InternalServerError, /./],
    ["[demo: 502-html]", OpenAI.InternalServerError, /status 502/],
    ["[demo: 503]", OpenAI.InternalServerError, /./],
    ["[demo: first-error]", OpenAI.APIError, /./],
    ["[demo: html]", OpenAI.InternalServerError, /event stream|not JSON/],
    ["[demo: empty]", OpenAI.InternalServerError, /./],
  ] as const)("%s", async (directive, type, words) => {
    await using fresh = await startProxy();
    const impatient = new OpenAI({ baseURL: `${fresh.url}/v1`, apiKey: "unused", maxRetries: 0 });
    const failure = await impatient.chat.completions
      .create({ model: "gpt-5-mini", messages: ask(`${directive} Hello`), stream: true })
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    expect(failure).toBeInstanceOf(type);
    expect((failure as Error).message).toMatch(words);
  });

  test("401 for a wrong client key, before the model name is looked at", async () => {
    await using guarded = await startProxy({ config: { auth: { apiKeys: ["k-alpha-0123456789"] } } });
    const stranger = new OpenAI({ baseURL: `${guarded.url}/v1`, apiKey: "wrong", maxRetries: 0 });
    const refusal = await stranger.chat.completions
      .create({ model: "nothing", messages: [] })
      .catch((thrown) => thrown);
    expect(refusal).toBeInstanceOf(OpenAI.AuthenticationError);
    const friend = new OpenAI({ baseURL: `${guarded.url}/v1`, apiKey: "k-alpha-0123456789" });
    expect((await friend.models.list()).data.length).toBeGreaterThan(5);
  });

  test("404 for an unknown model, with the nearest names", async () => {
    const failure = await client.chat.completions
      .create({ model: "gpt-5-mnii", messages: ask("Hi") })
      .catch((thrown) => thrown);
    expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
    expect(failure).toMatchObject({ code: "model_not_found", param: "model" });
    expect(failure.message).toContain("`gpt-5-mini`");
  });
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
