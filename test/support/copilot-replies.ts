/** Full replies in the form in which Copilot sends them, vendor by vendor: for tests and for the bench. */
import type { Dialect } from "../../src/dialects/hub/conversation";

interface ReplyForm {
  dialect: Dialect;
  reply: object;
}

const filter = Object.fromEntries(
  ["hate", "self_harm", "sexual", "violence"].map((name) => [name, { filtered: false, severity: "safe" }]),
);
const output = 400;
const usageOf = (input: number) => ({ completion_tokens: output, prompt_tokens: input, total_tokens: input + output });
/** Of a prompt of so many tokens, as many are in the cache. */
const cachedOf = (input: number) => Math.min(input, 800);

/**
 * @param model The id that a client asks for; most answers name a dated one.
 * @param input Tokens of the prompt.
 */
export const copilotReplies = (model: string, input = 912) =>
  ({
    "chat, GPT": {
      dialect: "chat",
      reply: {
        choices: [
          {
            finish_reason: "stop",
            index: 0,
            content_filter_results: filter,
            message: { content: "Hello.", padding: "abcdefghijklmnop", role: "assistant" },
          },
        ],
        created: 1785000000,
        id: "chatcmpl-A5iQJExrRR9lZjObeHBzjesQ5HvT1",
        usage: {
          ...usageOf(input),
          completion_tokens_details: { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
          prompt_tokens_details: { cached_tokens: 0 },
        },
        model: `${model}-2025-04-14`,
        prompt_filter_results: [{ prompt_index: 0, content_filter_results: filter }],
        system_fingerprint: "fp_80a1bad4c7",
      },
    },
    "chat, OpenAI's own form": {
      dialect: "chat",
      reply: {
        id: "chatcmpl-A5iQJExrRR9lZjObeHBzjesQ5HvT1",
        object: "chat.completion",
        created: 1785000000,
        model: `${model}-2025-04-14`,
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Hello.", refusal: null, annotations: [] },
            logprobs: null,
            finish_reason: "stop",
          },
        ],
        usage: {
          ...usageOf(input),
          prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
          completion_tokens_details: {
            reasoning_tokens: 0,
            audio_tokens: 0,
            accepted_prediction_tokens: 0,
            rejected_prediction_tokens: 0,
          },
        },
        service_tier: "default",
        system_fingerprint: "fp_80a1bad4c7",
      },
    },
    "chat, Claude": {
      dialect: "chat",
      reply: {
        choices: [{ finish_reason: "stop", message: { content: "Hello.", role: "assistant" } }],
        created: 1785000000,
        id: "ba49856c-7de2-485b-87cd-6ff61c58407e",
        usage: { ...usageOf(input), prompt_tokens_details: { cached_tokens: cachedOf(input) } },
        model: `${model}-20250929`,
      },
    },
    "messages, dated": {
      dialect: "messages",
      reply: {
        id: "msg_vrtx_01",
        type: "message",
        role: "assistant",
        model: `${model}-20250929`,
        content: [{ type: "text", text: "Hello." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: {
          input_tokens: input - cachedOf(input),
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: cachedOf(input),
          output_tokens: output,
        },
        copilot_usage: { total_nano_aiu: 1200 },
      },
    },
    responses: {
      dialect: "responses",
      reply: {
        id: "resp_1",
        object: "response",
        created_at: 1785000000,
        status: "completed",
        model: `${model}-2025-04-14`,
        output: [
          {
            id: btoa("item 1".padEnd(300, ".")),
            type: "message",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: "Hello.", annotations: [], logprobs: [] }],
          },
        ],
        usage: {
          input_tokens: input,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: input + output,
        },
        copilot_usage: { total_nano_aiu: 1200 },
      },
    },
  }) satisfies Record<string, ReplyForm>;

export type ReplyName = keyof ReturnType<typeof copilotReplies>;
