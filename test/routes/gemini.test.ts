/** Scenario: Google's API for its own package, `@google/genai`, and for who writes the JSON by hand. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ApiError, type Chat, type FunctionCall, GoogleGenAI } from "@google/genai";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { offerOnly } from "../support/catalogue";
import { type RunningProxy, startProxy } from "../support/proxy";

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
afterAll(() => proxy[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: replies as they come
type Json = any;

const google = (url = proxy.url, apiVersion?: string) =>
  new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: url, ...(apiVersion && { apiVersion }) } });
const path = (method: string, model = "gpt-5-mini") => `/v1beta/models/${model}:${method}`;
const hello = { contents: [{ role: "user", parts: [{ text: "Say hello." }] }] };

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

test("both versions of the address, and the key in a header or as a bearer token", async () => {
  const key = "a-client-key-of-gemini-123";
  await using guarded = await startProxy({ config: { auth: { apiKeys: [key] } } });
  for (const version of ["v1", "v1beta"]) {
    const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: guarded.url, apiVersion: version } });
    expect((await ai.models.generateContent({ model: "gpt-5-mini", contents: "Say hello." })).text).toContain("Hello!");
    expect((await ai.models.get({ model: "gpt-5-mini" })).name).toBe("models/gpt-5-mini");
    expect((await ai.models.list()).page.map(({ name }) => name)).toContain("models/claude-sonnet-4.6");
  }
  const headers = { authorization: `Bearer ${key}` };
  expect((await guarded.post(path("generateContent"), hello, { headers })).status).toBe(200);
});

describe("the key", () => {
  const key = "a-client-key-of-gemini-123";
  let guarded: RunningProxy;
  beforeAll(async () => {
    guarded = await startProxy({ config: { auth: { apiKeys: [key] } } });
  });
  afterAll(() => guarded[Symbol.asyncDispose]());

  test.each([
    ["POST", path("generateContent")],
    ["POST", path("streamGenerateContent")],
    ["POST", path("countTokens")],
    ["POST", "/v1/models/gpt-5-mini:generateContent"],
    ["GET", "/v1beta/models"],
    ["GET", "/v1beta/models/gpt-5-mini"],
  ])("a Gemini client's key is needed for %s %s, and the error is Google's", async (method, at) => {
    for (const sent of [{}, { "x-goog-api-key": `${key}x` }] as Record<string, string>[]) {
      const body = method === "POST" ? JSON.stringify(hello) : undefined;
      const response = await fetch(guarded.url + at, { method, body, headers: sent });
      expect(response.status).toBe(401);
      const { error } = (await response.json()) as Json;
      expect([error.code, error.status]).toEqual([401, "UNAUTHENTICATED"]);
      expect(error.details[0]).toMatchObject({ reason: "INVALID_API_KEY" });
    }
  });

  test("a key in the address is refused in words, though it is right, and is written nowhere", async () => {
    for (const at of [`${path("generateContent")}?key=${key}`, `${path("streamGenerateContent")}?alt=sse&key=${key}`]) {
      const response = await guarded.post(at, hello);
      const text = await response.text();
      expect(response.status).toBe(400);
      expect(JSON.parse(text).error.message).toContain("x-goog-api-key");
      expect(text).not.toContain(key);
    }
    expect((await fetch(`${guarded.url}/v1beta/models?key=${key}`)).status).toBe(400);
    expect(guarded.lines.join("\n")).not.toContain(key);
    expect(JSON.stringify(guarded.rows())).not.toContain(key);
  });
});

describe("errors", () => {
  const refused = async (at: string, init: RequestInit = {}) => {
    const response = await fetch(proxy.url + at, { method: "POST", body: JSON.stringify(hello), ...init });
    const { error } = (await response.json()) as Json;
    expect(error.code).toBe(response.status);
    return [response.status, error.status, error.message];
  };

  test.each<[string, RequestInit, number, string]>([
    ["/v1beta/models", {}, 405, "UNIMPLEMENTED"],
    ["/v1beta/nothing", {}, 404, "NOT_FOUND"],
    [path("sing"), {}, 404, "NOT_FOUND"],
    [path("generateContent", "nothing"), {}, 404, "NOT_FOUND"],
    ["/v1/models/nothing:generateContent", {}, 404, "NOT_FOUND"],
    ["/v1beta/models/%ff:generateContent", {}, 400, "INVALID_ARGUMENT"],
    [path("generateContent"), { method: "PUT" }, 405, "UNIMPLEMENTED"],
    [path("generateContent"), { body: "{" }, 400, "INVALID_ARGUMENT"],
    [path("generateContent"), { body: '{"contents":[]}' }, 400, "INVALID_ARGUMENT"],
    [path("streamGenerateContent?alt=xml"), {}, 400, "INVALID_ARGUMENT"],
    [path("generateContent"), { headers: { origin: "https://evil.example" } }, 403, "PERMISSION_DENIED"],
  ])("errors for a Gemini client, here of %s (%j), are Google's: %d %s", async (at, init, status, word) => {
    expect((await refused(at, init)).slice(0, 2)).toEqual([status, word]);
  });

  test("an error for a Gemini client names the field", async () => {
    const response = await proxy.post(path("generateContent"), {
      contents: [{ parts: [{ inlineData: { data: "x" } }] }],
    });
    const { error } = (await response.json()) as Json;
    expect(error.message).toContain("contents[0].parts[0].inlineData.mimeType");
    const fault = error.details.find((detail: Json) => detail["@type"].endsWith("BadRequest"));
    expect(fault.fieldViolations[0].field).toBe("contents[0].parts[0].inlineData.mimeType");
  });

  test("that a person must act on have a status that Gemini CLI does not retry, with our words", async () => {
    await using nobody = await startProxy({ accounts: [] });
    const response = await nobody.post(path("generateContent"), hello);
    expect([response.status, ((await response.json()) as Json).error.status]).toEqual([400, "FAILED_PRECONDITION"]);
    await using spent = await startProxy({
      demo: { accounts: [{ ...demoAccounts()[0]!, quota: quotas.exhausted() }] },
    });
    const answer = await spent.post(path("generateContent", "claude-sonnet-4.6"), hello);
    const { error } = (await answer.json()) as Json;
    expect(error.message).toContain("quota is used up");
    // 429 with a delay of more than five minutes is shown at once, too.
    const retry = error.details.find((detail: Json) => detail["@type"].endsWith("RetryInfo"));
    expect(answer.status === 400 || Number.parseFloat(retry.retryDelay) > 300).toBe(true);
  });

  test("reach the package with their status", async () => {
    const wrong = google().models.generateContent({ model: "nothing", contents: "Hi" });
    await expect(wrong).rejects.toMatchObject({ name: "ApiError", status: 404 });
    const cut = google().models.generateContentStream({ model: "gpt-5-mini", contents: "[demo: end 4] Say hello." });
    await expect(Array.fromAsync(await cut)).rejects.toBeInstanceOf(ApiError);
  });
});

describe("a stream without alt=sse", () => {
  test("a stream without alt=sse is one JSON array of whole replies", async () => {
    const response = await proxy.post(path("streamGenerateContent"), hello);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    const pieces = (await response.json()) as Json[];
    expect(pieces.length).toBeGreaterThan(3);
    const text = pieces
      .flatMap(({ candidates }) => candidates[0].content.parts.map((part: Json) => part.text))
      .join("");
    expect(text).toContain("DEMO: Hello!");
    expect(pieces.at(-1).candidates[0].finishReason).toBe("STOP");
    expect(proxy.rows()[0]).toMatchObject({ stream: 1, http_status: 200 });
  });

  test("a stream without alt=sse is an array too when it breaks, and when the upstream is silent", async () => {
    await using quiet = await startProxy();
    quiet.app.limits.keepAlive = 40;
    const ask = async (text: string) =>
      (await (await quiet.post(path("streamGenerateContent"), { contents: [{ parts: [{ text }] }] })).text()) as string;
    const broken = JSON.parse(await ask("[demo: end 4] Tell me of [demo: long 20]")) as Json[];
    expect(broken.at(-1).error).toMatchObject({ code: 503, status: "UNAVAILABLE" });
    const slow = await ask("[demo: silence 0.3] Say hello.");
    expect(slow).toMatch(/\n\n/);
    expect((JSON.parse(slow) as Json[]).at(-1).candidates[0].finishReason).toBe("STOP");
  });
});

describe("names of Google's models that are not listed", () => {
  test("never for another line, for another vendor's client, or against the config", async () => {
    await using own = await startProxy({ config: { modelAliases: { "gemini-2.5-flash": "gpt-5-mini" } } });
    expect((await own.post(path("generateContent", "gemini-2.5-flash"), hello)).status).toBe(200);
    expect(own.rows()[0]!.upstream_model).toBe("gpt-5-mini");
    offerOnly(own.demo, { "gpt-5-mini": ["/chat/completions"] });
    expect((await proxy.post(path("generateContent", "gemini-imagen"), hello)).status).toBe(404);
    const chat = { model: "gemini-2.5-flash", messages: [{ role: "user", content: "Hi" }] };
    expect((await proxy.post("/v1/chat/completions", chat)).status).toBe(404);
  });
});

test("tokens are counted of contents and of a whole request", async () => {
  const { totalTokens } = await google().models.countTokens({ model: "gpt-5-mini", contents: "hello there" });
  expect(totalTokens).toBeGreaterThan(2);
  const whole = {
    model: "models/gpt-5-mini",
    ...hello,
    systemInstruction: { parts: [{ text: "Be brief. ".repeat(50) }] },
  };
  const response = await proxy.post(path("countTokens"), { generateContentRequest: whole });
  expect(response.headers.get("x-token-count")).toBe("estimate");
  expect(((await response.json()) as Json).totalTokens).toBeGreaterThan(100);
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

test("Google's own example for the command line is answered, and an empty count is refused", async () => {
  const body = {
    system_instruction: { parts: { text: "You are a cat." } },
    contents: { parts: { text: "Hello there" } },
  };
  const response = await proxy.post(path("generateContent"), body);
  expect(response.status).toBe(200);
  expect(JSON.stringify(proxy.demo.journal.at(-1)!.body)).toContain("You are a cat.");
  const counted = await proxy.post(path("countTokens"), body);
  expect(((await counted.json()) as Json).totalTokens).toBeGreaterThan(5);
  for (const empty of [{ contents: [] }, { generateContentRequest: { contents: [] } }])
    expect((await proxy.post(path("countTokens"), empty)).status).toBe(400);
});
