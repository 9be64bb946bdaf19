/** Scenario: Google's API for its own package, `@google/genai`, and for who writes the JSON by hand. */
import { afterAll, describe, expect, test } from "bun:test";
import { ApiError, type Chat, type FunctionCall, GoogleGenAI } from "@google/genai";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("google");

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
afterAll(() => proxy[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: replies as they come
type Json = any;

const google = (url = proxy.url, apiVersion?: string) =>
  new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: url, ...(apiVersion && { apiVersion }) } });
const declaration = {
  name: "get_weather",
  description: "The weather in a city",
  parametersJsonSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

describe.each(["gemini-3.1-pro-preview", "claude-sonnet-4.6", "gpt-5.3-codex"])("a chat session with %s", (model) => {
  const session = (): Chat =>
    google().chats.create({
      model,
      config: {
        tools: [{ functionDeclarations: [declaration] }],
        thinkingConfig: { thinkingBudget: 2000, includeThoughts: true },
      },
    });
  const answer = ({ id, name }: FunctionCall) => ({
    functionResponse: { id, name, response: { output: "18 degrees, sunny" } },
  });

  test("calls the tool, gets its result and answers in pieces, which the session keeps", async () => {
    const chat = session();
    const first = await Array.fromAsync(await chat.sendMessageStream({ message: "What is the weather in Paris?" }));
    const calls = first.flatMap(({ functionCalls }) => functionCalls ?? []);
    expect(calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
    const last = await Array.fromAsync(await chat.sendMessageStream({ message: calls.map(answer) }));
    expect(last.map(({ text }) => text ?? "").join("")).toContain("18 degrees, sunny");
    expect(last.at(-1)!.usageMetadata!.totalTokenCount).toBeGreaterThan(20);
    // The session keeps a turn only if every piece of it is sound.
    expect(chat.getHistory(true).length).toBeGreaterThan(4);
    expect(proxy.rows()[0]).toMatchObject({ client_dialect: "gemini", client_model: model, stream: 1 });
    expect(JSON.parse(proxy.rows()[0]!.dropped)).not.toContain("thinking");
  });

  test("a history without thoughts, as Gemini CLI keeps it, carries their signatures", async () => {
    const ask = {
      model,
      config: { tools: [{ functionDeclarations: [declaration] }], thinkingConfig: { thinkingBudget: 2000 } },
    };
    const contents: Json[] = [{ role: "user", parts: [{ text: "What is the weather in Paris?" }] }];
    const first = await google().models.generateContent({ ...ask, contents });
    const parts = first.candidates![0]!.content!.parts!;
    // Thoughts are shown only to who asks for them.
    expect(parts.filter(({ thought }) => thought)).toEqual([]);
    expect(parts.some(({ thoughtSignature }) => thoughtSignature)).toBe(true);
    contents.push({ role: "model", parts }, { role: "user", parts: first.functionCalls!.map(answer) });
    await google().models.generateContent({ ...ask, contents });
    const sent = JSON.stringify(proxy.demo.journal.at(-1)!.body);
    expect(sent).toMatch(/"(?:signature|encrypted_content|reasoning_opaque)":"[\w+/=]{40,}"/);
  });
});

test("both versions of the address take the key in the package's header", async () => {
  const key = "a-client-key-of-gemini-123";
  await using guarded = await startProxy({ config: { auth: { apiKeys: [key] } } });
  for (const version of ["v1", "v1beta"]) {
    const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: guarded.url, apiVersion: version } });
    expect((await ai.models.generateContent({ model: "gpt-5-mini", contents: "Say hello." })).text).toContain("Hello!");
    expect((await ai.models.get({ model: "gpt-5-mini" })).name).toBe("models/gpt-5-mini");
    expect((await ai.models.list()).page.map(({ name }) => name)).toContain("models/claude-sonnet-4.6");
  }
});

test("errors reach Google's package with their status", async () => {
  const wrong = google().models.generateContent({ model: "nothing", contents: "Hi" });
  await expect(wrong).rejects.toMatchObject({ name: "ApiError", status: 404 });
  const cut = google().models.generateContentStream({ model: "gpt-5-mini", contents: "[demo: end 4] Say hello." });
  await expect(Array.fromAsync(await cut)).rejects.toBeInstanceOf(ApiError);
});

test("the list has limits and methods, and pages", async () => {
  const names: string[] = [];
  for await (const model of await google(undefined, "v1beta").models.list({ config: { pageSize: 7 } }))
    names.push(model.name!);
  expect(new Set(names).size).toBe(names.length);
  const all = ((await (await fetch(`${proxy.url}/v1beta/models`)).json()) as Json).models;
  expect(names).toEqual(all.map(({ name }: Json) => name));
  expect(all.find(({ name }: Json) => name === "models/claude-sonnet-4.6")).toMatchObject({
    displayName: "Claude Sonnet 4.6",
    inputTokenLimit: 168_000,
    outputTokenLimit: 32_000,
    supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
    thinking: true,
  });
});

describe.each(["gpt-5-mini", "gpt-5.3-codex", "claude-sonnet-4.6", "gemini-3.1-pro-preview"])(
  "structured output of %s",
  (model) => {
    const ask = (responseSchema: Json, responseMimeType = "application/json") => ({
      model,
      contents: "Which cities?",
      config: { responseMimeType, responseSchema },
    });
    const cities = {
      type: "ARRAY",
      items: { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] },
    };
    const colour = { type: "STRING", enum: ["red", "blue"] };

    test("may be a list, full and streamed", async () => {
      const full = await google().models.generateContent(ask(cities));
      expect(JSON.parse(full.text!)).toEqual([{ city: "Paris" }]);
      const stream = await Array.fromAsync(await google().models.generateContentStream(ask(cities)));
      expect(JSON.parse(stream.map(({ text }) => text ?? "").join(""))).toEqual([{ city: "Paris" }]);
    });

    test("may be one of some words, as JSON or as it is", async () => {
      expect(JSON.parse((await google().models.generateContent(ask(colour))).text!)).toBe("red");
      expect((await google().models.generateContent(ask(colour, "text/x.enum"))).text).toBe("red");
    });
  },
);
