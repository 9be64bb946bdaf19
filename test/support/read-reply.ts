/** Streams of models' answers, as official packages read them, and those that broke. */
import { expect } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { ClientDialect } from "../../src/dialects/hub/conversation";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { eventStream, eventsIn } from "./event-stream";
import { checkChatStream } from "./grammar-chat";
import { checkGeminiStream } from "./grammar-gemini";
import { checkMessagesStream } from "./grammar-messages";
import { checkResponsesStream } from "./grammar-responses";
import type { Json } from "./json";

/** What the strictest client of each dialect demands of a stream. */
export const grammars = {
  chat: checkChatStream,
  responses: checkResponsesStream,
  messages: checkMessagesStream,
  gemini: checkGeminiStream,
};

/** A whole stream, which its dialect's strictest client takes, too. Google's package puts nothing together. */
export async function readReply(dialect: ClientDialect, model: string, text: string): Promise<Json> {
  const asked = { model, turns: [], tools: [], stream: true };
  grammars[dialect](run(readSse, [new TextEncoder().encode(text)]), asked);
  const options = { apiKey: "none", maxRetries: 0, fetch: async () => eventStream(text) };
  const openai = new OpenAI(options);
  if (dialect === "messages") return new Anthropic(options).messages.stream({ messages: [] } as never).finalMessage();
  if (dialect === "responses") return openai.responses.stream({} as never).finalResponse();
  if (dialect === "chat") return chatReply(openai, text);
  const candidates = eventsIn(text).flatMap((event) => event.candidates ?? []);
  const parts: Json[] = [];
  for (const part of candidates.flatMap(({ content }) => content?.parts ?? [])) {
    const last = parts.at(-1);
    const goesOn = last?.text !== undefined && part.text !== undefined && last.thought === part.thought;
    if (goesOn) parts.splice(-1, 1, { ...last, ...part, text: last.text + part.text });
    else parts.push(part);
  }
  return { ...eventsIn(text).at(-1), candidates: [{ ...candidates.at(-1), content: { role: "model", parts } }] };
}

/** The package keeps of thoughts the last piece alone. */
async function chatReply(openai: OpenAI, text: string): Promise<Json> {
  const reply: Json = await openai.chat.completions.stream({ messages: [], model: "any" }).finalChatCompletion();
  const thoughts = eventsIn(text).map(({ choices }) => choices?.[0]?.delta?.reasoning_text ?? "");
  if (thoughts.some(Boolean)) reply.choices[0].message.reasoning_text = thoughts.join("");
  return reply;
}

/** The last event of a stream that broke: an error, and nothing before it looks complete. */
export function readBroken(dialect: ClientDialect, text: string): Json {
  const frames = run(readSse, [new TextEncoder().encode(text)]).flatMap(({ event, data }) =>
    data === undefined ? [] : [{ ...(event && { event }), data: data === "[DONE]" ? data : JSON.parse(data) }],
  );
  // Bun's matchers put themselves in place of what they match.
  const last = structuredClone(frames.at(-1)!.data);
  looksBroken[dialect](frames);
  return last;
}

interface Frame {
  event?: string;
  data: Json;
}

/** What a client must see last in a stream that broke; and nothing in it may look complete. */
const looksBroken: Record<ClientDialect, (seen: Frame[]) => void> = {
  chat(seen) {
    const { error } = seen.at(-1)!.data;
    expect(error).toMatchObject({ message: expect.any(String), code: expect.any(String) });
    expect(seen.some(({ data }) => data === "[DONE]")).toBe(false);
    // A call that was cut must not be told as one to be run.
    const reasons = seen.flatMap(({ data }) => data.choices ?? []).map((choice) => choice.finish_reason ?? null);
    expect(reasons.every((reason) => reason === null)).toBe(true);
  },
  responses(seen) {
    const { event, data } = seen.at(-1)!;
    expect(event).toBe("response.failed");
    expect(data.response).toMatchObject({
      id: seen[0]!.data.response.id,
      status: "failed",
      error: { code: expect.any(String), message: expect.any(String) },
    });
    const numbers: number[] = seen.map((frame) => frame.data.sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    const done = seen.filter((frame) => frame.event === "response.output_item.done").map((frame) => frame.data.item);
    expect(done.filter(({ type }) => type === "function_call")).toEqual([]);
    expect(data.response.output.filter(({ type }: Json) => type === "function_call")).toEqual([]);
  },
  messages(seen) {
    const { event, data } = seen.at(-1)!;
    expect(event).toBe("error");
    expect(data).toMatchObject({ type: "error", error: { type: expect.any(String), message: expect.any(String) } });
    const types = seen.map((frame) => frame.data.type);
    expect(types).not.toContain("message_stop");
    expect(types).not.toContain("message_delta");
    const call = seen.find((frame) => frame.data.content_block?.type === "tool_use")?.data.index;
    const ended = seen.some((frame) => frame.data.type === "content_block_stop" && frame.data.index === call);
    expect(call !== undefined && ended).toBe(false);
  },
  gemini(seen) {
    const { code, message, status } = seen.at(-1)!.data.error;
    expect([code >= 400, typeof message]).toEqual([true, "string"]);
    expect(status).toMatch(/^[A-Z_]+$/);
    const candidates = seen.flatMap(({ data }) => data.candidates ?? []);
    expect(candidates.filter((candidate) => candidate.finishReason)).toEqual([]);
    expect(candidates.flatMap(({ content }) => content.parts).filter((part) => part.functionCall)).toEqual([]);
  },
};
