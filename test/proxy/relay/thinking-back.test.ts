/**
 * Rows: Claude's thinking, which clients of other dialects send back to the turn that they answer: it goes up as it was
 * made.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy({ demo: { generation: "C" } });
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => void proxy.demo.journal.splice(0));

const schema = { type: "object", properties: { location: { type: "string" } }, required: ["location"] };
const wish = "What is the weather in Paris? Think about it.";

/** How a client asks, keeps the answer, and sends it back with a tool's result. */
interface Client {
  first(model: string, prompt: string, stream: boolean): Promise<Json[]>;
  answer(model: string, prompt: string, kept: Json[]): Promise<Response>;
}

const eventsOf = async (response: Response): Promise<Json[]> =>
  (await response.text()).split("\n").flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6))] : []));

/** @param more `includeThoughts` or nothing: Google's default shows no thoughts. */
function gemini(more: Json): Client {
  const ask = (model: string, contents: Json[], how: string) =>
    proxy.post(`/v1beta/models/${model}:${how}`, {
      contents,
      tools: [{ functionDeclarations: [{ name: "get_weather", description: "Weather.", parameters: schema }] }],
      generationConfig: { thinkingConfig: { thinkingBudget: 2000, ...more } },
    });
  const user = (text: string) => ({ role: "user", parts: [{ text }] });
  return {
    async first(model, prompt, stream) {
      const replies = stream
        ? await eventsOf(await ask(model, [user(prompt)], "streamGenerateContent?alt=sse"))
        : [await (await ask(model, [user(prompt)], "generateContent")).json()];
      // As Gemini CLI does: thoughts stay with the client.
      return replies.flatMap(({ candidates }) => candidates[0].content.parts).filter((part: Json) => !part.thought);
    },
    answer(model, prompt, parts) {
      const { id, name } = parts.find(({ functionCall }) => functionCall).functionCall;
      const result = { functionResponse: { id, name, response: { output: "Sunny." } } };
      const contents = [user(prompt), { role: "model", parts }, { role: "user", parts: [result] }];
      return ask(model, contents, "generateContent");
    },
  };
}

/** @param keepsText Whether the client sends the thinking's text back, and not its signature alone. */
function chat(keepsText: boolean): Client {
  const ask = (model: string, messages: Json[], stream: boolean) =>
    proxy.post("/v1/chat/completions", {
      model,
      messages,
      stream,
      reasoning_effort: "low",
      tools: [{ type: "function", function: { name: "get_weather", description: "Weather.", parameters: schema } }],
    });
  const user = (content: string) => ({ role: "user", content });
  return {
    async first(model, prompt, stream) {
      if (!stream) return [((await (await ask(model, [user(prompt)], false)).json()) as Json).choices[0].message];
      const message: Json = { role: "assistant", content: null, reasoning_text: "", tool_calls: [] };
      for (const { choices } of await eventsOf(await ask(model, [user(prompt)], true)))
        for (const { delta } of choices) {
          message.reasoning_text += delta.reasoning_text ?? "";
          message.reasoning_opaque = delta.reasoning_opaque ?? message.reasoning_opaque;
          for (const { index, ...call } of delta.tool_calls ?? []) {
            message.tool_calls[index] ??= { ...call, function: { ...call.function, arguments: "" } };
            message.tool_calls[index].function.arguments += call.function.arguments ?? "";
          }
        }
      return [message];
    },
    answer(model, prompt, [message]) {
      const { reasoning_text, ...rest } = message;
      const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "Sunny." };
      return ask(model, [user(prompt), keepsText ? message : rest, result], false);
    },
  };
}

const responses: Client = {
  async first(model, prompt, stream) {
    const response = await askResponses(model, [{ role: "user", content: prompt }], stream);
    if (!stream) return ((await response.json()) as Json).output;
    return (await eventsOf(response)).find(({ type }) => type === "response.completed").response.output;
  },
  answer(model, prompt, output) {
    const { call_id } = output.find(({ type }) => type === "function_call");
    const result = { type: "function_call_output", call_id, output: "Sunny." };
    return askResponses(model, [{ role: "user", content: prompt }, ...output, result], false);
  },
};
const askResponses = (model: string, input: Json[], stream: boolean) =>
  proxy.post("/v1/responses", {
    model,
    input,
    stream,
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "low", summary: "auto" },
    tools: [{ type: "function", name: "get_weather", description: "Weather.", parameters: schema, strict: false }],
  });

const clients: [string, Client][] = [
  ["Google's client without thoughts", gemini({})],
  ["Google's client with thoughts", gemini({ includeThoughts: true })],
  ["a client of chat completions", chat(true)],
  ["a client of chat completions that keeps the signature alone", chat(false)],
  ["a client of the Responses API", responses],
];

/** The second one thinks within a budget, and has the chat API as well. */
const models = ["claude-opus-5.5", "claude-sonnet-4.6"];

describe.each(models)("thinking of %s", (model) => {
  const ofMessages = clients.filter(([name]) => model === models[0] || !name.includes("chat completions"));
  describe.each(ofMessages)("from %s", (_, client) => {
    test.each([true, false])("comes back as it was made, streamed: %p", async (stream) => {
      const kept = await client.first(model, wish, stream);
      proxy.demo.journal.length = 0;
      const response = await client.answer(model, wish, kept);
      expect({ status: response.status, body: await response.text() }).toMatchObject({ status: 200 });
      const sent = proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model);
      expect(sent).toHaveLength(1);
      const [thinking] = sent[0].messages[1].content;
      expect(thinking).toMatchObject({ type: "thinking", signature: expect.any(String) });
      expect(thinking.thinking).not.toBe("");
    });

    test.each([true, false])("comes back redacted where it was, streamed: %p", async (stream) => {
      const prompt = `${wish} [demo: redacted]`;
      const kept = await client.first(model, prompt, stream);
      proxy.demo.journal.length = 0;
      const response = await client.answer(model, prompt, kept);
      expect({ status: response.status, body: await response.text() }).toMatchObject({ status: 200 });
      const sent = proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model);
      expect(sent).toHaveLength(1);
      expect(sent[0].messages[1].content[0]).toEqual({ type: "redacted_thinking", data: expect.any(String) });
    });
  });
});

describe("Claude's thinking that a client of its own API has changed", () => {
  const tools = [{ name: "get_weather", description: "Weather.", input_schema: schema }];
  const ask = (messages: Json[]) =>
    proxy.post("/v1/messages", {
      model: "claude-opus-5.5",
      max_tokens: 4000,
      thinking: { type: "adaptive", display: "summarized" },
      tools,
      messages,
    });

  test.each([
    ["emptied", ""],
    ["rewritten", "I looked."],
  ])("is left out where it was %s, and the request is sent once more", async (how, thinking) => {
    // No two thoughts have the same signature, but those of the same words here.
    const user = { role: "user", content: `${wish} It is ${how}.` };
    const { content } = (await (await ask([user])).json()) as Json;
    const { id } = content.find(({ type }: Json) => type === "tool_use");
    proxy.demo.journal.length = 0;
    const changed = content.map((block: Json) => (block.type === "thinking" ? { ...block, thinking } : block));
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Sunny." }] };
    const response = await ask([user, { role: "assistant", content: changed }, result]);
    expect({ status: response.status, body: await response.text() }).toMatchObject({ status: 200 });
    expect(proxy.demo.journal.map(({ status }) => status)).toEqual([400, 200]);
    expect(JSON.stringify(proxy.demo.journal[1]!.body)).not.toContain('"thinking",');
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("foreign-items");
  });
});
