/**
 * Requests for zero output tokens. Anthropic documents `max_tokens: 0` as the way to warm the prompt cache: the prompt is
 * read and the answer is empty. Other upstreams manage their cache themselves, so nothing is sent to them; nor is
 * anything sent for a warm-up of the responses dialect, which only announces a request.
 */
import type { Conversation } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { gatherFrames } from "../../lib/net/stream/sse";
import type { Exchange } from "./exchange";
import type { Facts } from "./incoming";
import { streamHeaders } from "./respond";
import type { Target } from "./target";

/** A request that asks for no token, and why its answer ends. */
interface EmptyRequest {
  conversation: Conversation;
  reason: "stop" | "length";
}

/**
 * Undefined for a request that has to be sent.
 * @param isPassed The upstream gets the client's bytes, and decides what they ask for.
 */
export function asksNothing(exchange: Exchange, target: Target, isPassed: boolean): EmptyRequest | undefined {
  const { model, stream } = exchange.incoming;
  if (exchange.outline.isWarmUp)
    return { conversation: exchange.conversation() ?? { model, stream, turns: [], tools: [] }, reason: "stop" };
  const translated = isPassed ? undefined : exchange.conversation();
  if (translated?.maxTokens !== 0 || target.dialect === "messages") return undefined;
  return { conversation: translated, reason: "length" };
}

/** For the book: no turn of a person, because nothing was sent. */
export const nothingSent: Facts = {
  initiator: "agent",
  reason: "nothing was sent: no output was requested",
  vision: false,
};

/** The empty answer, in the client's dialect. */
export function answerNothing({ conversation, reason }: EmptyRequest, { codec, book, running }: Exchange): Response {
  const events: ReplyEvent[] = [
    { type: "start", id: "", model: conversation.model },
    { type: "usage", usage: { input: 0, output: 0 } },
    { type: "finish", reason },
  ];
  for (const event of events) running.addEvent(event);
  book.markFirstByte();
  running.end(200);
  if (!conversation.stream) return Response.json(codec.encodeReply(events, conversation));
  const out = gatherFrames();
  const stream = codec.encodeStream(conversation)(out);
  for (const event of events) stream.push(event);
  return new Response(out.take(), { headers: streamHeaders(stream.type) });
}
