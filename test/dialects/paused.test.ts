/** Rows: a reply that pauses: Anthropic's clients are told to go on, all others that it is not complete. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { ReplyEvent } from "../../src/dialects/hub/reply";

const events: ReplyEvent[] = [
  { type: "start", id: "1", model: "m" },
  { type: "block-start", block: { kind: "text" } },
  { type: "block-delta", text: "I look further." },
  { type: "block-end" },
  { type: "finish", reason: "pause" },
];
const hello = { role: "user", content: "Hi" };

test("a reply that pauses never ends as if it were complete", () => {
  const { chat, responses, messages, gemini } = codecs;
  const asked = { model: "m", messages: [hello] };
  expect(messages.encodeReply(events, messages.decodeRequest(asked))).toMatchObject({ stop_reason: "pause_turn" });
  expect(chat.encodeReply(events, chat.decodeRequest(asked))).toMatchObject({ choices: [{ finish_reason: "length" }] });
  expect(responses.encodeReply(events, responses.decodeRequest({ model: "m", input: [hello] }))).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  });
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
  expect(gemini.encodeReply(events, gemini.decodeRequest({ model: "m", contents }))).toMatchObject({
    candidates: [{ finishReason: "MAX_TOKENS" }],
  });
});
