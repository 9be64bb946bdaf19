/**
 * Rows: why Anthropic stopped a reply reaches the clients of OpenAI's dialects, who have no member for it but the
 * refusal's text.
 */
import { expect, test } from "bun:test";
import { chat } from "../../src/dialects/chat/codec";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { messages } from "../../src/dialects/messages/codec";
import { responses } from "../../src/dialects/responses/codec";
import { jsonFrame, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { checkChatStream } from "../support/grammar-chat";
import { checkResponsesStream } from "../support/grammar-responses";
import { overWire, reads, written } from "../support/streams";

const explanation = "This request touches a field that is closed to this model.";
const stop_details = { type: "refusal", category: "bio", explanation };
const body = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Half" }],
  stop_reason: "refusal",
  stop_details,
  usage: { input_tokens: 3, output_tokens: 1 },
};
const event = (type: string, more: object): SseFrame => jsonFrame({ type, ...more }, type);
const stream = [
  event("message_start", { message: { ...body, content: [], stop_reason: null, stop_details: null } }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Half" } }),
  event("content_block_stop", { index: 0 }),
  event("message_delta", { delta: { stop_reason: "refusal", stop_sequence: null, stop_details }, usage: body.usage }),
  event("message_stop", {}),
];
const asked = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const chatAsked = chat.decodeRequest(asked);
const responsesAsked = responses.decodeRequest({ model: "m", input: "Hi" });

test.each<[string, ReplyEvent[]]>([
  ["full", messages.decodeReply(body)],
  ["streamed", run(reads(messages), stream)],
])("a reply read %s", (_, events) => {
  expect(chat.encodeReply(events, chatAsked).choices).toMatchObject([
    { message: { content: "Half", refusal: explanation }, finish_reason: "content_filter" },
  ]);
  expect(responses.encodeReply(events, responsesAsked)).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "content_filter" },
    output: [{ type: "message", content: [{ text: "Half" }, { type: "refusal", refusal: explanation }] }],
  });
  expect(messages.encodeReply(events, messages.decodeRequest(asked))).toMatchObject({
    stop_reason: "refusal",
    stop_details: { type: "refusal", explanation },
  });

  const chunks = overWire(written(chat.encodeStream(chatAsked), events));
  checkChatStream(chunks, chatAsked);
  expect(chunks.map(({ data }) => data).join("")).toContain(`"refusal":${JSON.stringify(explanation)}`);
  const told = overWire(written(responses.encodeStream(responsesAsked), events));
  checkResponsesStream(told, responsesAsked);
  expect(told.at(-1)?.data).toContain(JSON.stringify(explanation));
});
