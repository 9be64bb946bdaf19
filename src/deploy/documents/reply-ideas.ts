/** What an upstream may answer, as each dialect says it. */
import { chatReply, geminiReply, messagesReply, outputText, responsesReply } from "./plain-bodies";
import { type Idea, name } from "./spellings";

export const thought = "I shall greet.";
const proof = "cHJvb2Y=";
const call = { id: "call_1", name };

export const replies: Idea[] = [
  {
    name: "text",
    said: {
      chat: chatReply({ content: "Grüße." }),
      responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Grüße.")] }]),
      messages: messagesReply([{ type: "text", text: "Grüße." }]),
      gemini: geminiReply([{ text: "Grüße." }]),
    },
  },
  {
    name: "reasoning",
    needle: thought,
    said: {
      chat: chatReply({ content: "Hi.", reasoning_text: thought }),
      responses: responsesReply([
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: thought }] },
        { type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] },
      ]),
      messages: messagesReply([
        { type: "thinking", thinking: thought, signature: "" },
        { type: "text", text: "Hi." },
      ]),
      gemini: geminiReply([{ text: thought, thought: true }, { text: "Hi." }]),
    },
  },
  {
    name: "reasoning signature",
    needle: proof,
    said: {
      chat: chatReply({ content: "Hi.", reasoning_text: thought, reasoning_opaque: proof }),
      responses: responsesReply([
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: thought }], encrypted_content: proof },
        { type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] },
      ]),
      messages: messagesReply([
        { type: "thinking", thinking: thought, signature: proof },
        { type: "text", text: "Hi." },
      ]),
      gemini: geminiReply([
        { text: thought, thought: true },
        { text: "Hi.", thoughtSignature: proof },
      ]),
    },
  },
  {
    name: "tool calls",
    needle: "Paris",
    said: {
      chat: chatReply(
        { tool_calls: [{ id: call.id, type: "function", function: { name, arguments: '{"city":"Paris"}' } }] },
        "tool_calls",
      ),
      responses: responsesReply([
        {
          type: "function_call",
          id: "fc_1",
          call_id: call.id,
          name,
          arguments: '{"city":"Paris"}',
          status: "completed",
        },
      ]),
      messages: messagesReply([{ type: "tool_use", ...call, input: { city: "Paris" } }], { stop_reason: "tool_use" }),
      gemini: geminiReply([{ functionCall: { ...call, args: { city: "Paris" } } }]),
    },
  },
  {
    name: "refusal",
    said: {
      chat: chatReply({ refusal: "No." }),
      responses: responsesReply([
        { type: "message", id: "msg_1", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      ]),
      messages: messagesReply([{ type: "text", text: "No." }], { stop_reason: "refusal" }),
      gemini: geminiReply([{ text: "No." }], { finishReason: "SAFETY" }),
    },
  },
  {
    name: "output token limit reached",
    said: {
      chat: chatReply({ content: "Hi." }, "length"),
      responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }], {
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      }),
      messages: messagesReply([{ type: "text", text: "Hi." }], { stop_reason: "max_tokens" }),
      gemini: geminiReply([{ text: "Hi." }], { finishReason: "MAX_TOKENS" }),
    },
  },
  {
    name: "cached tokens",
    said: {
      chat: chatReply({ content: "Hi." }, "stop", { prompt_tokens_details: { cached_tokens: 777 } }),
      responses: responsesReply(
        [{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }],
        {},
        { input_tokens_details: { cached_tokens: 777 } },
      ),
      messages: messagesReply([{ type: "text", text: "Hi." }], {}, { input_tokens: 123, cache_read_input_tokens: 777 }),
      gemini: geminiReply([{ text: "Hi." }], {}, { cachedContentTokenCount: 777 }),
    },
  },
  {
    name: "reasoning tokens",
    needle: "77",
    said: {
      chat: chatReply({ content: "Hi." }, "stop", { completion_tokens_details: { reasoning_tokens: 77 } }),
      responses: responsesReply(
        [{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }],
        {},
        { output_tokens_details: { reasoning_tokens: 77 } },
      ),
      messages: messagesReply([{ type: "text", text: "Hi." }], {}, { output_tokens_details: { thinking_tokens: 77 } }),
      gemini: geminiReply([{ text: "Hi." }], {}, { candidatesTokenCount: 13, thoughtsTokenCount: 77 }),
    },
  },
];
