/** Answers of models as official packages read them, streamed or not. */
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

const grammars = {
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
