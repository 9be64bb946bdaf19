/** Rows: a call that the output limit cut off: no client may take it for one to run. */
import { afterAll, describe, expect, test } from "bun:test";
import { GoogleGenAI } from "@google/genai";
import { offerOnly } from "../../support/catalogue";
import { eventStream } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";

const models = {
  "gpt-5-mini": "/chat/completions",
  "gpt-5.3-codex": "/responses",
  "claude-sonnet-4.6": "/v1/messages",
};

const proxy = await startProxy();
offerOnly(proxy.demo, {
  "gpt-5-mini": ["/chat/completions"],
  "gpt-5.3-codex": ["/responses"],
  "claude-sonnet-4.6": ["/v1/messages"],
});
afterAll(() => proxy[Symbol.asyncDispose]());

const sse = (events: (object | string)[], named = true) =>
  eventStream(
    events
      .map((event) => {
        const name = named && typeof event === "object" && "type" in event ? `event: ${event.type}\n` : "";
        return `${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`;
      })
      .join(""),
  );

/** What each upstream answers that ends with this call, full and streamed. `end` is cut by the limit, or not. */
const answers: Record<string, (input: string, isCut: boolean, stream: boolean) => Response> = {
  "/chat/completions": (input, isCut, stream) => {
    const call = { id: "call_1", type: "function", function: { name: "write", arguments: input } };
    const finish_reason = isCut ? "length" : "tool_calls";
    const base = { id: "c1", created: 1, model: "m" };
    const message = { role: "assistant", content: "I write." };
    if (!stream)
      return Response.json({
        ...base,
        object: "chat.completion",
        choices: [{ index: 0, finish_reason, message: { ...message, tool_calls: [call] } }],
      });
    const chunk = (delta: object, reason: string | null = null) => ({
      ...base,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    return sse(
      [chunk(message), chunk({ tool_calls: [{ index: 0, ...call }] }), chunk({}, finish_reason), "[DONE]"],
      false,
    );
  },
  "/responses": (input, isCut, stream) => {
    const item = {
      type: "function_call",
      id: "fc_1",
      call_id: "call_1",
      name: "write",
      arguments: input,
      status: isCut ? "incomplete" : "completed",
    };
    const status = isCut ? "incomplete" : "completed";
    const response = {
      id: "resp_1",
      object: "response",
      model: "m",
      status,
      incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
      output: [item],
      usage: { input_tokens: 9, output_tokens: 9, total_tokens: 18 },
    };
    if (!stream) return Response.json(response);
    return sse([
      { type: "response.created", sequence_number: 0, response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: { ...item, arguments: "" } },
      {
        type: "response.function_call_arguments.delta",
        sequence_number: 2,
        output_index: 0,
        item_id: "fc_1",
        delta: input,
      },
      { type: "response.output_item.done", sequence_number: 3, output_index: 0, item },
      { type: `response.${status}`, sequence_number: 4, response },
    ]);
  },
  "/v1/messages": (input, isCut, stream) => {
    const stop_reason = isCut ? "max_tokens" : "tool_use";
    const use = { type: "tool_use", id: "toolu_1", name: "write" };
    const base = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };
    const usage = { input_tokens: 9, output_tokens: 9 };
    // Anthropic gives an empty object for an input that was cut.
    if (!stream)
      return Response.json({ ...base, stop_reason, usage, content: [{ ...use, input: isCut ? {} : { raw: input } }] });
    return sse([
      { type: "message_start", message: { ...base, stop_reason: null, usage, content: [] } },
      { type: "content_block_start", index: 0, content_block: { ...use, input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ]);
  },
};

const partial = '{"path":"a.ts","text":"half of';
const whole = '{"path":"a.ts","text":"all"}';

describe.each(Object.entries(models))("%s", (model, path) => {
  const next = (input: string, isCut: boolean) =>
    proxy.demo.intercept(path, ({ body }) => answers[path]!(input, isCut, (body as Json).stream === true));

  test.each([partial, whole])("ending at its limit gives Google's package no call to run: %s", async (input) => {
    const google = new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: proxy.url } });
    const tools = [{ functionDeclarations: [{ name: "write" }] }];
    next(input, true);
    const full = await google.models.generateContent({
      model,
      contents: "Write.",
      config: { tools, maxOutputTokens: 99 },
    });
    expect([full.functionCalls, full.candidates![0]!.finishReason]).toEqual([undefined, "MAX_TOKENS" as never]);
    next(input, true);
    const stream = await google.models.generateContentStream({
      model,
      contents: "Write.",
      config: { tools, maxOutputTokens: 99 },
    });
    const pieces = await Array.fromAsync(stream);
    expect(pieces.flatMap(({ functionCalls }) => functionCalls ?? [])).toEqual([]);
    expect(pieces.at(-1)!.candidates![0]!.finishReason).toBe("MAX_TOKENS" as never);
  });

  if (path !== "/v1/messages")
    test("giving a call that is no JSON ends Google's reply as Google's own models do", async () => {
      const google = new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: proxy.url } });
      next(partial, false);
      const full = await google.models.generateContent({ model, contents: "Write." });
      expect([full.functionCalls, full.candidates![0]!.finishReason]).toEqual([
        undefined,
        "MALFORMED_FUNCTION_CALL" as never,
      ]);
      next(partial, false);
      const pieces = await Array.fromAsync(await google.models.generateContentStream({ model, contents: "Write." }));
      expect(pieces.flatMap(({ functionCalls }) => functionCalls ?? [])).toEqual([]);
      expect(pieces.at(-1)!.candidates![0]!.finishReason).toBe("MALFORMED_FUNCTION_CALL" as never);
    });

  if (path !== "/v1/messages")
    test("ending at its limit gives a Messages client no call with a part of its input", async () => {
      next(partial, true);
      const body = { model, max_tokens: 99, messages: [{ role: "user", content: "Write." }] };
      const reply = (await (await proxy.post("/v1/messages", body)).json()) as Json;
      expect(reply.stop_reason).toBe("max_tokens");
      expect(JSON.stringify(reply.content)).not.toContain("tool_use");
    });

  test("giving a whole call still gives it to Google's package", async () => {
    const google = new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: proxy.url } });
    next(whole, false);
    const pieces = await Array.fromAsync(await google.models.generateContentStream({ model, contents: "Write." }));
    const calls = pieces.flatMap(({ functionCalls }) => functionCalls ?? []);
    expect(calls).toMatchObject([{ name: "write", args: { path: "a.ts", text: "all" } }]);
    expect(pieces.at(-1)!.candidates![0]!.finishReason).toBe("STOP" as never);
  });
});
