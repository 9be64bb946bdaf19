/**
 * Requests for zero output tokens. Anthropic documents `max_tokens: 0` as the way to warm the prompt cache: the prompt is
 * read and the answer is empty. Other upstreams manage their cache themselves, so nothing is sent to them.
 */
import { codecs } from "../dialects/codecs";
import type { ClientDialect, Conversation } from "../dialects/hub/conversation";
import type { ReplyEvent } from "../dialects/hub/reply";
import { gatherFrames } from "../net/sse";
import type { Facts } from "./incoming";
import type { RequestRecord } from "./request-record";
import { streamHeaders } from "./respond";
import type { Target } from "./target";

/** Whether the request asks for no token from a model that does not speak the messages dialect. */
export const asksNothing = (conversation: Conversation | undefined, target: Target): conversation is Conversation =>
  conversation?.maxTokens === 0 && target.dialect !== "messages";

/** For the record: no turn of a person, because nothing was sent. */
export const nothingSent: Facts = {
  initiator: "agent",
  reason: "nothing was sent: no output was requested",
  vision: false,
};

/** The empty answer, in the client's dialect. */
export function answerNothing(conversation: Conversation, client: ClientDialect, record: RequestRecord): Response {
  const events: ReplyEvent[] = [
    { type: "start", id: "", model: conversation.model },
    { type: "usage", usage: { input: 0, output: 0 } },
    { type: "finish", reason: "length" },
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
