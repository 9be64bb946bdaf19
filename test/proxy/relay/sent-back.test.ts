/**
 * Rows: replies that clients send back, by the packages that do it: what dragoman made of them must not reach an
 * upstream; `fixtures/scenes/cut.txt` has citations, pages and calls that were cut.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, type ModelMessage } from "ai";
import { marksSentBack } from "../../../src/deploy/documents/own-marks";
import type { ClientDialect } from "../../../src/dialects/hub/conversation";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("cut");

// What it says about models it does not know is of no use here.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => void proxy.demo.journal.splice(0));

/** The last request that a model got. */
const lastSent = (): string =>
  JSON.stringify(proxy.demo.journal.findLast(({ body }) => (body as { model?: unknown } | null)?.model)!.body);

describe("with @ai-sdk/openai", () => {
  const secondTurn = async (model: string, options: { store?: boolean }) => {
    const provider = createOpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused" });
    const messages: ModelMessage[] = [{ role: "user", content: "Say hello." }];
    const common = { model: provider(model), providerOptions: { openai: options }, maxRetries: 0 };
    const first = await generateText({ ...common, messages });
    messages.push(...first.response.messages, { role: "user", content: "What did you say?" });
    await generateText({ ...common, messages });
    return first.text;
  };

  const models = ["claude-sonnet-4.6", "gemini-3.1-pro-preview", "gpt-5.3-codex", "gpt-5-mini"];
  // By default it comes back by its id only.
  test.each(models.flatMap((model) => [[model, {}] as const, [model, { store: false }] as const]))(
    "an answer of %s comes back, and reaches the model, with the options %j",
    async (model, options) => {
      const said = await secondTurn(model, options);
      expect(lastSent()).toContain(JSON.stringify(said).slice(1, -1));
    },
  );
});

const wish = "Please think, then search the web for red pandas.";
const models = ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"];

interface Sender {
  address(model: string): string;
  /** A request whose reply has as many kinds of marks as this dialect knows. */
  ask: Json;
  /** The conversation with the reply in it, as clients send it. */
  again(reply: Json): Json;
}

const thanks = { role: "user", content: "Thank you." };
const asked = { role: "user", content: wish };
const senders: Record<ClientDialect, Sender> = {
  chat: {
    address: () => "/v1/chat/completions",
    ask: { messages: [asked], reasoning_effort: "medium", web_search_options: {} },
    again: (reply) => ({ messages: [asked, reply.choices[0].message, thanks], web_search_options: {} }),
  },
  responses: {
    address: () => "/v1/responses",
    ask: { input: [asked], reasoning: { effort: "medium", summary: "auto" }, tools: [{ type: "web_search" }] },
    again: (reply) => ({ input: [asked, ...reply.output, thanks], tools: [{ type: "web_search" }] }),
  },
  messages: {
    address: () => "/v1/messages",
    ask: {
      max_tokens: 4000,
      messages: [asked],
      thinking: { type: "enabled", budget_tokens: 1500 },
      tools: [
        { type: "web_search_20250305", name: "web_search" },
        { name: "lookup", input_schema: { type: "object", properties: { query: { type: "string" } } } },
      ],
    },
    again: (reply) => ({
      max_tokens: 4000,
      messages: [asked, { role: "assistant", content: reply.content }, thanks],
      tools: [{ type: "web_search_20250305", name: "web_search" }],
    }),
  },
  gemini: {
    address: (model) => `/v1beta/models/${model}:generateContent`,
    ask: {
      contents: [{ role: "user", parts: [{ text: wish }] }],
      generationConfig: { thinkingConfig: { thinkingBudget: 2000, includeThoughts: true } },
      tools: [{ googleSearch: {} }],
    },
    again: (reply) => ({
      contents: [
        { role: "user", parts: [{ text: wish }] },
        reply.candidates[0].content,
        { role: "user", parts: [{ text: "Thank you." }] },
      ],
      tools: [{ googleSearch: {} }],
    }),
  },
};
const clients = Object.keys(senders) as ClientDialect[];

/** Every text of a JSON with the name of its member. */
function leavesOf(value: Json, key = ""): [string, string][] {
  if (Array.isArray(value)) return value.flatMap((member) => leavesOf(member, key));
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([name, member]) => leavesOf(member, name));
  return typeof value === "string" ? [[key, value]] : [];
}
const marksIn = (json: Json) => leavesOf(json).flatMap((leaf) => marksSentBack.filter(({ is }) => is(...leaf)));

/** What nobody but dragoman writes, whether it is listed or not. */
const looksOwn = (value: string) =>
  /dragoman|^\w+_[0-9a-f]{32}$/.test(value) || Buffer.from(value, "base64").includes("dragoman");

async function send(client: ClientDialect, model: string, body: Json): Promise<{ status: number; json: Json }> {
  const { address } = senders[client];
  const response = await proxy.post(address(model), client === "gemini" ? body : { model, ...body });
  return { status: response.status, json: await response.json() };
}

describe("each mark that dragoman makes", () => {
  const seen = new Set<string>();
  const replies: [name: string, client: ClientDialect, make: () => Promise<Json>][] = [
    ...clients.flatMap((client) =>
      models.map((model): (typeof replies)[number] => [
        `a reply of ${model}`,
        client,
        async () => (await send(client, model, senders[client].ask)).json,
      ]),
    ),
    [
      "a summary",
      "responses",
      async () =>
        (await proxy.post("/v1/responses/compact", { model: "claude-sonnet-4.6", input: [asked] })).json() as Json,
    ],
  ];

  test.each(replies)("is read or left out wherever %s goes from a client of %s", async (_, client, make) => {
    const reply = await make();
    const sentBack = senders[client].again(reply);
    for (const [key, value] of leavesOf(sentBack))
      expect([key, value, looksOwn(value) && !marksSentBack.some(({ is }) => is(key, value))]).toEqual([
        key,
        value,
        false,
      ]);
    for (const { name } of marksIn(sentBack)) seen.add(name);
    for (const model of models) {
      const before = proxy.demo.journal.length;
      const { status, json } = await send(client, model, sentBack);
      expect([model, status, json.error ?? null]).toEqual([model, 200, null]);
      const bodies = proxy.demo.journal.slice(before).map(({ body }) => body as Json);
      expect(bodies.filter((body) => body?.model).length).toBeGreaterThan(0);
      for (const body of bodies)
        expect(
          marksIn(body).flatMap(({ name, goesUp }) => (goesUp ? [] : [`${name}: ${JSON.stringify(body)}`])),
        ).toEqual([]);
    }
  });

  test("each mark in the list was seen in what dragoman makes", () => {
    expect(marksSentBack.map(({ name }) => name).filter((name) => !seen.has(name))).toEqual([]);
  });

  test("each mark is read where the list says", async () => {
    for (const { reader } of marksSentBack)
      for (const file of reader.split(", "))
        expect([file, await Bun.file(`${import.meta.dir}/../../../src/dialects/${file}`).exists()]).toEqual([
          file,
          true,
        ]);
  });
});
