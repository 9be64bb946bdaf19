/**
 * Scenario: web searches that run while the model answers, for clients of every dialect on models of every upstream
 * dialect; `fixtures/scenes/searches.txt` has who searches, and what is not found.
 */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { readSse, type SseFrame } from "../../../src/lib/net/stream/sse";
import { checkMessagesStream } from "../../support/grammar-messages";
import { checkResponsesStream } from "../../support/grammar-responses";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("searches");

const proxy = await startProxy();
const anthropic = new Anthropic({ baseURL: proxy.url, apiKey: "none", maxRetries: 0 });
const google = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: proxy.url } });
const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "none", maxRetries: 0 });
afterAll(() => proxy[Symbol.asyncDispose]());

/** A model of each upstream dialect. */
const models = { messages: "claude-sonnet-4.6", responses: "gpt-5.2", chat: "gemini-3.1-pro-preview" };
const upstreams = Object.keys(models) as (keyof typeof models)[];

const wish = "Please search the web for red pandas.";
const search = { type: "web_search_20250305" as const, name: "web_search" as const };
const lookup = { name: "lookup", description: "Looks something up.", input_schema: { type: "object" as const } };
const page = "https://example.com/demo";

/** The same reply again has other ids, and another time. */
const withoutIds = (value: unknown): Json =>
  JSON.parse(JSON.stringify(value), (key, member) =>
    /^(?:id|_request_id|created_at|created|tool_use_id|call_id|encrypted_content|completed_at|obfuscation|parsed|parsed_output|parsed_arguments|output_parsed)$/.test(
      key,
    )
      ? undefined
      : member,
  );

const withoutNulls = (value: Json): Json =>
  JSON.parse(JSON.stringify(value), (_key, member) => (member === null ? undefined : member));

/** What went upstream for the newest request, the oldest first. */
const sentSince = (from: number): Json[] =>
  proxy.demo.journal.slice(from).flatMap(({ body }) => ((body as Json)?.model ? [body] : []));

const framesOf = (text: string): SseFrame[] => {
  const frames: SseFrame[] = [];
  const reader = readSse({ push: (frame) => void frames.push(frame), end() {} });
  reader.push(new TextEncoder().encode(text));
  reader.end();
  return frames;
};

describe.each(upstreams)("a Messages client on a model of %s", (upstream) => {
  const model = models[upstream];
  const ask = (more: object = {}): Json => ({
    model,
    max_tokens: 2000,
    messages: [{ role: "user", content: wish }],
    tools: [search, lookup],
    ...more,
  });

  test("gets calls, results, citations and the count, full and streamed", async () => {
    const from = proxy.demo.journal.length;
    const full: Json = await anthropic.messages.create(ask());
    const kinds = full.content.map(({ type }: Json) => type).filter((type: string) => type !== "text");
    expect(kinds).toEqual(["server_tool_use", "web_search_tool_result"]);
    const call = full.content.find(({ type }: Json) => type === "server_tool_use");
    expect(call).toMatchObject({
      name: "web_search",
      input: { query: "red pandas" },
      id: expect.stringMatching(/^srvtoolu_\w+$/),
    });
    const result = full.content.find(({ type }: Json) => type === "web_search_tool_result");
    expect(result).toMatchObject({ tool_use_id: call.id, content: [{ type: "web_search_result", url: page }] });
    expect(full.content.at(-1)).toMatchObject({
      type: "text",
      citations: [{ type: "web_search_result_location", url: page, title: "DEMO result" }],
    });
    expect(full).toMatchObject({ stop_reason: "end_turn", usage: { server_tool_use: { web_search_requests: 1 } } });
    // A model that searches by itself does so, in one answer.
    const asked = upstream === "responses" ? [model] : [model, "gpt-5-mini", model];
    expect(sentSince(from).map((body) => body.model)).toEqual(asked);

    const streamed = await anthropic.messages.stream(ask()).finalMessage();
    // A stream begins with the upstream's own words, where more is left out.
    expect(withoutNulls(withoutIds(streamed))).toEqual(withoutNulls(withoutIds(full)));
    const response = await proxy.post("/v1/messages", ask({ stream: true }));
    const frames = framesOf(await response.text());
    expect(() => checkMessagesStream(frames)).not.toThrow();
    expect(frames.filter(({ event }) => event === "message_start")).toHaveLength(1);
  });

  test("sends the search back, and the model sees a call and its result", async () => {
    const first: Json = await anthropic.messages.create(ask());
    const from = proxy.demo.journal.length;
    const messages = [
      { role: "user", content: wish },
      { role: "assistant", content: first.content },
      { role: "user", content: "Thank you." },
    ];
    for (const tools of [[search, lookup], [lookup]]) {
      const second = await anthropic.messages.create(ask({ messages, tools }));
      expect(second.stop_reason).toBe("end_turn");
    }
    const [offered, plain] = sentSince(from).map((body) => JSON.stringify(body.messages ?? body.input));
    expect(offered).toBe(plain!);
    expect(offered).not.toContain("server_tool_use");
    expect(offered).toContain(page);
    expect(offered).toContain("Cite a page");
  });

  test("a reply with a call of the client's own ends with it", async () => {
    const mixed = "Please search the web for red pandas. Then call lookup.";
    // With a limit of uses the search runs here on every model.
    const limited = [{ ...search, max_uses: 5 }, lookup];
    const asked = { messages: [{ role: "user", content: mixed }], tools: limited };
    const full: Json = await anthropic.messages.create(ask(asked));
    if (full.content.every(({ type }: Json) => type !== "tool_use")) throw new Error(JSON.stringify(full.content));
    expect(full.stop_reason).toBe("tool_use");
    const kinds = full.content.map(({ type }: Json) => type);
    expect(kinds.filter((kind: string) => kind !== "text").sort()).toEqual([
      "server_tool_use",
      "tool_use",
      "web_search_tool_result",
    ]);
    const own = full.content.find(({ type }: Json) => type === "tool_use");
    const answered = await anthropic.messages.create(
      ask({
        messages: [
          { role: "user", content: mixed },
          { role: "assistant", content: full.content },
          { role: "user", content: [{ type: "tool_result", tool_use_id: own.id, content: "It is red." }] },
        ],
      }),
    );
    expect(answered.stop_reason).toBe("end_turn");
  });

  test("Claude Code's own request for a search is served", async () => {
    const alone = ask({
      stream: true,
      thinking: { type: "disabled" },
      system: "You are an assistant for performing a web search tool use",
      messages: [{ role: "user", content: "Perform a web search for the query: red pandas" }],
      tools: [{ ...search, max_uses: 8 }],
      tool_choice: { type: "tool", name: "web_search" },
    });
    const message: Json = await anthropic.messages.stream(alone).finalMessage();
    expect(message.content.map(({ type }: Json) => type)).toContain("web_search_tool_result");
    expect(message.usage.server_tool_use.web_search_requests).toBe(1);
  });
});

describe.each(upstreams)("a Responses client on a model of %s", (upstream) => {
  const ask = (more: object = {}): Json => ({
    model: models[upstream],
    input: wish,
    tools: [
      { type: "web_search" },
      { type: "function", name: "lookup", parameters: { type: "object" }, strict: false },
    ],
    ...more,
  });

  test("gets items of searches with citations, full and streamed", async () => {
    const from = proxy.demo.journal.length;
    const full: Json = await openai.responses.create(ask());
    const call = full.output.find(({ type }: Json) => type === "web_search_call");
    expect(call).toMatchObject({ status: "completed", action: { type: "search" } });
    const text = full.output.at(-1).content[0];
    expect(text.annotations[0]).toMatchObject({ type: "url_citation", url: page, title: "DEMO result" });
    const isNative = upstream === "responses";
    expect(sentSince(from)).toHaveLength(isNative ? 1 : 3);
    expect(proxy.rows().find(({ path }) => path === "/v1/responses")!.searches).toBe(1);

    const streamed = await openai.responses.stream(ask()).finalResponse();
    expect(withoutIds(streamed.output)).toEqual(withoutIds(full.output));
    const response = await proxy.post("/v1/responses", ask({ stream: true }));
    const frames = framesOf(await response.text());
    if (!isNative) expect(() => checkResponsesStream(frames)).not.toThrow();
    const types = frames.map(({ event }) => event).filter((type) => type?.includes("web_search"));
    expect(types).toEqual([
      "response.web_search_call.in_progress",
      "response.web_search_call.searching",
      "response.web_search_call.completed",
    ]);
  });

  test("the next request of the client may hold the search, and is answered", async () => {
    const first: Json = await openai.responses.create(ask());
    const input = [{ role: "user", content: wish }, ...first.output, { role: "user", content: "Thank you." }];
    const second = await openai.responses.create(ask({ input, store: false }));
    expect(second.status).toBe("completed");
  });

  test("a model that is told to search does so", async () => {
    const forced: Json = await openai.responses.create(ask({ tool_choice: { type: "web_search" } }));
    expect(forced.output.map(({ type }: Json) => type)).toContain("web_search_call");
  });
});

describe.each(upstreams)("a chat client on a model of %s", (upstream) => {
  const ask = (more: object = {}): Json => ({
    model: models[upstream],
    messages: [{ role: "user", content: wish }],
    web_search_options: {},
    ...more,
  });

  test("gets the text with its citations, full and streamed", async () => {
    const full: Json = await openai.chat.completions.create(ask());
    const { message } = full.choices[0];
    const [{ url_citation: cited }] = message.annotations;
    expect(cited).toMatchObject({ url: page, title: "DEMO result" });
    expect(message.content.slice(cited.start_index, cited.end_index)).toBe(`[DEMO result](${page})`);
    // What was said before the search is a paragraph of its own.
    if (upstream === "messages") expect(message.content).toMatch(/^DEMO: I will call web_search\. 🔧\n\nDEMO: done/);
    expect(message.tool_calls).toBeUndefined();
    expect(full.choices[0].finish_reason).toBe("stop");

    let content = "";
    let annotations: Json;
    for await (const chunk of (await openai.chat.completions.create(ask({ stream: true }))) as Json) {
      const { delta } = chunk.choices[0] ?? {};
      content += delta?.content ?? "";
      annotations ??= delta?.annotations;
    }
    expect({ content, annotations }).toEqual({ content: message.content, annotations: message.annotations });
  });
});

describe.each(upstreams)("a Gemini client on a model of %s", (upstream) => {
  const ask = (): Json => ({
    model: models[upstream],
    contents: wish,
    config: { tools: [{ googleSearch: {} }] },
  });

  test("gets the same text, full and streamed, and the search ran", async () => {
    const full = await google.models.generateContent(ask());
    // The demo that searches by itself names its pages in citations only.
    expect(full.text).toContain(upstream === "responses" ? "red pandas" : page);
    expect(proxy.rows()[0]!.searches).toBe(1);
    let text = "";
    for await (const piece of await google.models.generateContentStream(ask())) text += piece.text ?? "";
    expect(text).toBe(full.text!);
  });
});

describe.each(upstreams)("on a model of %s", (upstream) => {
  const model = models[upstream];
  const twice = "Search the web for pandas twice.";
  const mixed = "Please search the web for red pandas. Then call lookup.";
  const lookupFor = {
    responses: { type: "function", name: "lookup", parameters: { type: "object" }, strict: false },
    chat: { type: "function", function: { name: "lookup", parameters: { type: "object" } } },
  };
  const isNative = upstream === "responses";

  test("two searches at once are answered in their order", async () => {
    const from = proxy.demo.journal.length;
    const messages = [{ role: "user" as const, content: twice }];
    const tools = [{ ...search, max_uses: 5 }];
    const reply: Json = await anthropic.messages.create({ model, max_tokens: 2000, messages, tools });
    const kinds = reply.content.map(({ type }: Json) => type).filter((type: string) => type !== "text");
    expect(kinds).toEqual(["server_tool_use", "server_tool_use", "web_search_tool_result", "web_search_tool_result"]);
    const [one, two, first, second] = reply.content.filter(({ type }: Json) => type !== "text");
    expect([first.tool_use_id, second.tool_use_id]).toEqual([one.id, two.id]);
    expect(reply.usage.server_tool_use.web_search_requests).toBe(2);
    expect(sentSince(from)).toHaveLength(4);
    if (isNative) return;
    const response = await proxy.post("/v1/responses", {
      model,
      input: twice,
      stream: true,
      tools: [{ type: "web_search" }],
    });
    const frames = framesOf(await response.text());
    expect(() => checkResponsesStream(frames)).not.toThrow();
    const { response: last } = JSON.parse(frames.at(-1)!.data!);
    expect(last.output.filter(({ type }: Json) => type === "web_search_call")).toHaveLength(2);
  });

  test("a reply that also calls a tool of the client's ends there, in each dialect", async () => {
    if (!isNative) {
      const tools: Json = [{ type: "web_search" }, lookupFor.responses];
      const reply: Json = await openai.responses.create({ model, input: mixed, tools });
      const types = reply.output
        .map(({ type }: Json) => type)
        .filter((type: string) => !/message|reasoning/.test(type));
      expect(types.sort()).toEqual(["function_call", "web_search_call"]);
      const called = reply.output.find(({ type }: Json) => type === "function_call");
      const output = { type: "function_call_output", call_id: called.call_id, output: "It is red." };
      const input: Json = [{ role: "user", content: mixed }, ...reply.output, output];
      expect((await openai.responses.create({ model, input, tools, store: false })).status).toBe("completed");
    }
    const asked: Json = {
      model,
      messages: [{ role: "user", content: mixed }],
      tools: [lookupFor.chat],
      web_search_options: {},
    };
    const { choices }: Json = await openai.chat.completions.create(asked);
    expect(choices[0].finish_reason).toBe("tool_calls");
    expect(choices[0].message.tool_calls).toMatchObject([{ function: { name: "lookup" } }]);
  });
});
