/** Rows: what a reply used, as each maker counts it: the sums are the same in every dialect. */
import { expect, test } from "bun:test";
import { chat } from "../../src/dialects/chat/codec";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { messages } from "../../src/dialects/messages/codec";
import { responses } from "../../src/dialects/responses/codec";
import { usageOf } from "../support/reply-grammar";

const chatReply = (usage: JsonObject) =>
  chat.decodeReply({
    id: "x",
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
    usage,
  });
const messagesReply = (usage: JsonObject, content: JsonObject[] = [{ type: "text", text: "Hi." }]) =>
  messages.decodeReply({ id: "msg_1", model: "m", content, stop_reason: "end_turn", usage });
const asked = responses.decodeRequest({ model: "m", input: "Hi" });

test.each([
  [
    "Gemini on Copilot: beside the output, at the top",
    { prompt_tokens: 619, completion_tokens: 53, total_tokens: 806, reasoning_tokens: 134 },
    { input: 619, output: 187, reasoning: 134 },
  ],
  [
    "xAI: beside the output, in the details",
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 35,
      completion_tokens_details: { reasoning_tokens: 20 },
    },
    { input: 10, output: 25, reasoning: 20 },
  ],
  [
    "OpenAI: within the output",
    {
      prompt_tokens: 10,
      completion_tokens: 25,
      total_tokens: 35,
      completion_tokens_details: { reasoning_tokens: 20 },
      reasoning_tokens: 20,
    },
    { input: 10, output: 25, reasoning: 20 },
  ],
  [
    "GPT on Copilot: zeros at the top",
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, reasoning_tokens: 0 },
    { input: 10, output: 5, reasoning: 0 },
  ],
])("the tokens of thinking are counted for %s", (_maker, usage, expected) => {
  const events = chatReply(usage);
  expect(usageOf(events)).toEqual(expected);
  expect(messages.encodeReply(events, messages.decodeRequest({ model: "m", messages: [] })).usage).toMatchObject({
    input_tokens: expected.input,
    output_tokens: expected.output,
    output_tokens_details: { thinking_tokens: expected.reasoning },
  });
  expect(responses.encodeReply(events, asked).usage).toMatchObject({
    output_tokens: expected.output,
    output_tokens_details: { reasoning_tokens: expected.reasoning },
    total_tokens: expected.input + expected.output,
  });
});

test("tokens that only the total shows are the output's, in every dialect", () => {
  // Google's own API of the chat dialect counts thinking there only.
  const events = chatReply({ prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 });
  expect(usageOf(events)).toEqual({ input: 35, output: 74 });
  expect(responses.encodeReply(events, asked).usage).toMatchObject({ output_tokens: 74, total_tokens: 109 });
  const { usage } = messages.encodeReply(events, messages.decodeRequest({ model: "m", messages: [] }));
  expect(usage).toMatchObject({ input_tokens: 35, output_tokens: 74 });
});

test("what was written to the cache for five minutes is never less than nothing", () => {
  const events = messagesReply({
    input_tokens: 9,
    output_tokens: 6,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 3 },
  });
  const { usage } = messages.encodeReply(events, messages.decodeRequest({ model: "m", messages: [] }));
  expect(usage).toMatchObject({ cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 3 } });
});

test("Claude's thinking tokens reach a client of responses and of chat", () => {
  const events = messagesReply({ input_tokens: 9, output_tokens: 60, output_tokens_details: { thinking_tokens: 41 } });
  expect(usageOf(events)).toMatchObject({ output: 60, reasoning: 41 });
  expect(responses.encodeReply(events, asked).usage).toMatchObject({ output_tokens_details: { reasoning_tokens: 41 } });
  const hello = chat.decodeRequest({ model: "m", messages: [{ role: "user", content: "Hi" }] });
  expect(chat.encodeReply(events, hello).usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 41 } });
});

test("the tokens of visible thinking are estimated by its length if they were not counted, and 0 without thinking", () => {
  const thinking = [
    { type: "thinking", thinking: "Well, well.", signature: "c2ln" },
    { type: "text", text: "Hi." },
  ];
  const numbers = { input_tokens: 9, output_tokens: 60 };
  const usage = (content?: JsonObject[]) => responses.encodeReply(messagesReply(numbers, content), asked).usage;
  expect(usage(thinking)).toMatchObject({ output_tokens_details: { reasoning_tokens: 3 } });
  expect(usage()).toMatchObject({ output_tokens_details: { reasoning_tokens: 0 } });
});
