/** Requests and replies with nothing particular in them, as each dialect says them. */
import type { ClientDialect, JsonObject } from "../../dialects/hub/conversation";

const model = "m";
export const hello = { role: "user", content: "Hello." };
export const plainRequests: Record<ClientDialect, JsonObject> = {
  chat: { model, messages: [hello] },
  responses: { model, input: [hello] },
  messages: { model, max_tokens: 32_000, messages: [hello] },
  gemini: { model, contents: [geminiTurn(hello)] },
};

/** A turn whose content is a text or parts. */
export function geminiTurn({ role, content }: JsonObject): JsonObject {
  const parts = typeof content === "string" ? [{ text: content }] : content;
  return { role: role === "assistant" ? "model" : "user", parts };
}

export const plainReplies: Record<ClientDialect, JsonObject> = {
  chat: chatReply({ content: "Hi." }),
  responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }]),
  messages: messagesReply([{ type: "text", text: "Hi." }]),
  gemini: geminiReply([{ text: "Hi." }]),
};

export function geminiReply(parts: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const usageMetadata = { promptTokenCount: 900, candidatesTokenCount: 90, totalTokenCount: 990, ...usage };
  const candidates = [{ content: { parts, role: "model" }, finishReason: "STOP", index: 0, ...more }];
  return { candidates, usageMetadata, modelVersion: model, responseId: "r1" };
}

export function chatReply(message: JsonObject, finish_reason = "stop", more: JsonObject = {}): JsonObject {
  const usage = { prompt_tokens: 900, completion_tokens: 90, total_tokens: 990, ...more };
  const choices = [{ index: 0, finish_reason, message: { role: "assistant", content: null, ...message } }];
  return { id: "chatcmpl-1", object: "chat.completion", created: 1, model, choices, usage };
}

export function responsesReply(output: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const counted = {
    input_tokens: 900,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 90,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 990,
    ...usage,
  };
  return {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model,
    output,
    usage: counted,
    ...more,
  };
}

export function messagesReply(content: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const counted = { input_tokens: 900, output_tokens: 90, ...usage };
  const end = { stop_reason: "end_turn", stop_sequence: null };
  return { id: "msg_1", type: "message", role: "assistant", model, content, ...end, usage: counted, ...more };
}

export function outputText(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}
