/**
 * Requests for zero output tokens. Anthropic documents `max_tokens: 0` as the way to warm the prompt cache: the prompt is
 * read and the answer is empty. Other upstreams manage their cache themselves, so nothing is sent to them; nor is
 * anything sent for a warm-up of the responses dialect, which only announces a request.
 */
import { type ClientCodec, codecs } from "../dialects/codecs";
import type { ClientDialect, Conversation } from "../dialects/hub/conversation";
import type { ReplyEvent } from "../dialects/hub/reply";
import { gatherFrames } from "../net/stream/sse";
import type { Facts, Incoming, ReadConversation } from "./incoming";
import type { RequestRecord } from "./request-record";
import { streamHeaders } from "./respond";
import type { Target } from "./target";

/** A request that asks for no token, and why its answer ends. */
interface EmptyTurn {
  conversation: Conversation;
  reason: "stop" | "length";
}

interface Question {
  codec: ClientCodec;
  incoming: Incoming;
  conversation: ReadConversation;
  /** Undefined where the request is passed through. */
  translated: Conversation | undefined;
  target: Target;
}

/** Undefined for a request that has to be sent. */
export function asksNothing({ codec, incoming, conversation, translated, target }: Question): EmptyTurn | undefined {
  const { model, stream, body } = incoming;
  if (codec.isWarmUp?.(body))
    return { conversation: conversation() ?? { model, stream, turns: [], tools: [] }, reason: "stop" };
  if (translated?.maxTokens !== 0 || target.dialect === "messages") return undefined;
  return { conversation: translated, reason: "length" };
}

/** For the record: no turn of a person, because nothing was sent. */
export const nothingSent: Facts = {
  initiator: "agent",
  reason: "nothing was sent: no output was requested",
  vision: false,
};

/** The empty answer, in the client's dialect. */
export function answerNothing(
  { conversation, reason }: EmptyTurn,
  client: ClientDialect,
  record: RequestRecord,
): Response {
  const events: ReplyEvent[] = [
    { type: "start", id: "", model: conversation.model },
    { type: "usage", usage: { input: 0, output: 0 } },
    { type: "finish", reason },
  ];
  for (const event of events) record.addEvent(event);
  record.markFirstByte();
  record.end(200);
  if (!conversation.stream) return Response.json(codecs[client].encodeReply(events, conversation));
  const out = gatherFrames();
  const stream = codecs[client].encodeStream(conversation)(out);
  for (const event of events) stream.push(event);
  return new Response(out.take(), { headers: streamHeaders(codecs[client].streamType?.(conversation)) });
}
