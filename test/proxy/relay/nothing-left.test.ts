/** Rows: parts that an upstream has no form for: a turn of which nothing else is left is refused, never sent empty. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { ClientDialect } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const proxy = await startProxy();
offerOnly(proxy.demo, {
  "claude-sonnet-4.6": ["/v1/messages"],
  "gemini-3.1-pro-preview": ["/chat/completions"],
  "gpt-5-mini": ["/chat/completions"],
  "gpt-5.3-codex": ["/responses"],
});
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => void proxy.demo.journal.splice(0));

/** For each client the models that another dialect serves. */
const models: Record<ClientDialect, string[]> = {
  chat: ["claude-sonnet-4.6", "gpt-5.3-codex"],
  responses: ["claude-sonnet-4.6", "gemini-3.1-pro-preview"],
  messages: ["gpt-5.3-codex", "gemini-3.1-pro-preview"],
  gemini: ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"],
};

/** A part that no upstream of another dialect knows. */
const hologram: Record<ClientDialect, Json> = {
  chat: { type: "hologram", url: "x" },
  responses: { type: "hologram", url: "x" },
  messages: { type: "hologram", url: "x" },
  gemini: { hologram: { url: "x" } },
};
const text: Record<ClientDialect, (words: string) => Json> = {
  chat: (words) => ({ type: "text", text: words }),
  responses: (words) => ({ type: "input_text", text: words }),
  messages: (words) => ({ type: "text", text: words }),
  gemini: (words) => ({ text: words }),
};

/** A conversation with these parts as the user's newest message, the model's answer or a tool's result. */
const conversations: Record<"message" | "answer" | "result", Record<ClientDialect, (parts: Json[]) => Json>> = {
  message: {
    chat: (content) => ({ messages: [{ role: "user", content }] }),
    responses: (content) => ({ input: [{ role: "user", content }] }),
    messages: (content) => ({ max_tokens: 99, messages: [{ role: "user", content }] }),
    gemini: (parts) => ({ contents: [{ role: "user", parts }] }),
  },
  answer: {
    chat: (content) => ({ messages: [user, { role: "assistant", content }, user] }),
    responses: (content) => ({ input: [user, { role: "assistant", content: content.map(output) }, user] }),
    messages: (content) => ({ max_tokens: 99, messages: [user, { role: "assistant", content }, user] }),
    gemini: (parts) => ({ contents: [geminiUser, { role: "model", parts }, geminiUser] }),
  },
  result: {
    chat: (content) => ({
      messages: [
        user,
        { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "c1", content },
      ],
    }),
    responses: (output) => ({
      input: [
        user,
        { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output },
      ],
    }),
    messages: (content) => ({
      max_tokens: 99,
      messages: [
        user,
        { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content }] },
      ],
    }),
    gemini: (parts) => ({
      contents: [
        geminiUser,
        { role: "model", parts: [{ functionCall: { id: "c1", name: "f", args: {} } }] },
        { role: "user", parts: [{ functionResponse: { id: "c1", name: "f", parts } }] },
      ],
    }),
  },
};
const user = { role: "user", content: "Hello." };
const geminiUser = { role: "user", parts: [{ text: "Hello." }] };
/** The model's own texts have another type in the Responses API. */
const output = (part: Json): Json => (part.type === "input_text" ? { ...part, type: "output_text" } : part);

const addresses: Record<ClientDialect, (model: string) => string> = {
  chat: () => "/v1/chat/completions",
  responses: () => "/v1/responses",
  messages: () => "/v1/messages",
  gemini: (model) => `/v1beta/models/${model}:generateContent`,
};

describe.each(Object.keys(models) as ClientDialect[])("a client of %s", (client) => {
  const send = async (model: string, body: Json) => {
    const path = addresses[client](model);
    const response = await proxy.post(path, client === "gemini" ? body : { model, ...body });
    return { status: response.status, text: await response.text() };
  };

  describe.each(drawn(client, models[client], 2))("on %s", (model) => {
    test.each(Object.entries(conversations))(
      "is told with 400 which part of the %s has no form there",
      async (place, make) => {
        const { status, text: told } = await send(model, make[client]([hologram[client], text[client](" ")]));
        expect([status, told]).toEqual([400, expect.stringContaining("`hologram`")]);
        // A client keeps the result: a person can take it out who knows whose it is.
        expect(told.includes("the result of the call `c1`")).toBe(place === "result");
        expect(proxy.demo.journal.filter(({ method }) => method === "POST")).toEqual([]);
      },
    );

    test.each(Object.entries(conversations))("gets an answer where words are left of the %s", async (_, make) => {
      const { status } = await send(model, make[client]([hologram[client], text[client]("A red panda.")]));
      expect(status).toBe(200);
      const { body } = proxy.demo.journal.findLast(({ method }) => method === "POST")!;
      expect(JSON.stringify(body)).toContain("A red panda.");
      expect(JSON.parse(proxy.rows()[0]!.dropped)).toContain("hologram");
    });
  });
});

test("a summary that another service has sealed is refused where nobody can read it", async () => {
  const input = [{ type: "compaction", id: "cmp_1", encrypted_content: "gAAAAB" }, user];
  for (const model of models.responses) {
    const response = await proxy.post("/v1/responses", { model, input });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("`compaction`")]);
  }
});

test.each([
  ["/v1/messages", { max_tokens: 99, messages: [user, { role: "assistant", content: [] }, user] }],
  [
    "/v1beta/models/MODEL:generateContent",
    { contents: [geminiUser, { role: "model", parts: [{ text: "" }] }, geminiUser] },
  ],
  ["/v1/responses", { input: [user, { role: "assistant", content: "" }, user] }],
])("an empty turn of the model in %s is left out for an upstream of chat", async (path, body) => {
  const model = "gemini-3.1-pro-preview";
  const response = await proxy.post(path.replace("MODEL", model), path.includes("MODEL") ? body : { model, ...body });
  expect(response.status).toBe(200);
  const { messages } = proxy.demo.journal.findLast(({ method }) => method === "POST")!.body as Json;
  expect(messages.map(({ role }: Json) => role)).toEqual(["user", "user"]);
});

test.each([
  [
    "/v1/messages",
    {
      max_tokens: 99,
      messages: [
        {
          role: "user",
          content: [
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQKJQ==" } },
          ],
        },
      ],
    },
    "document.pdf",
  ],
  [
    "/v1beta/models/MODEL:generateContent",
    { contents: [{ parts: [{ inlineData: { mimeType: "text/csv", data: "YSxi" } }] }] },
    "document.csv",
  ],
])("a file without a name that %s brings has one for OpenAI's models, which require it", async (path, body, name) => {
  for (const model of ["gpt-5.3-codex", "gpt-5-mini"]) {
    const response = await proxy.post(path.replace("MODEL", model), path.includes("MODEL") ? body : { model, ...body });
    expect(response.status).toBe(200);
    const sent = proxy.demo.journal.findLast(({ method }) => method === "POST")!.body;
    expect(JSON.stringify(sent)).toContain(`"filename":"${name}"`);
  }
});
