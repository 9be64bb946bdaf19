/**
 * Rows: replies have what the official packages declare: every member that is not optional, and null where only the
 * vendor's own service knows it. The tables of names are the compiler's: a newer package with another member does not
 * compile here.
 */
import { describe, expect, test } from "bun:test";
import type { Message, MessageDeltaUsage, RawMessageDeltaEvent, Usage } from "@anthropic-ai/sdk/resources/messages";
import type { CompletionUsage } from "openai/resources";
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionMessage } from "openai/resources/chat/completions";
import type { Response, ResponseUsage } from "openai/resources/responses/responses";
import { codecs, tokenCountFormats } from "../../src/dialects/codecs";
import type { Dialect, JsonObject } from "../../src/dialects/hub/conversation";
import { jsonOf } from "../../src/lib/net/stream/sse";
import type { Json } from "../support/json";
import { written } from "../support/streams";

type Required<T> = { [Name in keyof T]-?: undefined extends T[Name] ? never : Name }[keyof T];
/** The names of the members that are not optional. */
type Names<T> = Record<Required<T>, true>;

const declared = {
  message: {
    ...{ id: true, type: true, role: true, model: true, content: true, container: true, diagnostics: true },
    ...{ stop_reason: true, stop_sequence: true, stop_details: true, usage: true },
  } satisfies Names<Message>,
  messageUsage: {
    ...{ input_tokens: true, output_tokens: true, cache_creation_input_tokens: true, cache_read_input_tokens: true },
    ...{ cache_creation: true, output_tokens_details: true, server_tool_use: true, service_tier: true },
    ...{ inference_geo: true, speed: true },
  } satisfies Names<Usage>,
  messageEnd: {
    ...{ container: true, stop_reason: true, stop_sequence: true, stop_details: true },
  } satisfies Names<RawMessageDeltaEvent.Delta>,
  messageEndUsage: {
    ...{ input_tokens: true, output_tokens: true, cache_creation_input_tokens: true, cache_read_input_tokens: true },
    ...{ output_tokens_details: true, server_tool_use: true },
  } satisfies Names<MessageDeltaUsage>,
  completion: { id: true, object: true, created: true, model: true, choices: true } satisfies Names<ChatCompletion>,
  choice: {
    ...{ index: true, message: true, logprobs: true, finish_reason: true },
  } satisfies Names<ChatCompletion.Choice>,
  chatMessage: { role: true, content: true, refusal: true } satisfies Names<ChatCompletionMessage>,
  chunk: { id: true, object: true, created: true, model: true, choices: true } satisfies Names<ChatCompletionChunk>,
  chunkChoice: { index: true, delta: true, finish_reason: true } satisfies Names<ChatCompletionChunk.Choice>,
  chatUsage: { prompt_tokens: true, completion_tokens: true, total_tokens: true } satisfies Names<CompletionUsage>,
  response: {
    ...{ id: true, object: true, created_at: true, model: true, output: true, error: true, incomplete_details: true },
    ...{ instructions: true, metadata: true, parallel_tool_calls: true, temperature: true, top_p: true },
    ...{ tool_choice: true, tools: true, access_programs: true },
    // The package makes it of the output.
  } satisfies Omit<Names<Response>, "output_text">,
  /** What Open Responses' schema of a response requires beside that, with a value of the type that it has. */
  openResponse: {
    ...{ previous_response_id: null, max_output_tokens: null, max_tool_calls: null, safety_identifier: null },
    ...{ prompt_cache_key: null, presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0, background: false },
    ...{ store: false, service_tier: "default", truncation: "disabled" },
  },
  responseUsage: {
    ...{ input_tokens: true, input_tokens_details: true, output_tokens: true, output_tokens_details: true },
    total_tokens: true,
  } satisfies Names<ResponseUsage>,
  inputDetails: { cached_tokens: true, cache_write_tokens: true } satisfies Names<ResponseUsage.InputTokensDetails>,
  outputDetails: { reasoning_tokens: true } satisfies Names<ResponseUsage.OutputTokensDetails>,
};

const questions: Record<Dialect, JsonObject> = {
  chat: { messages: [{ role: "user", content: "Hi" }], stream_options: { include_usage: true } },
  responses: { input: "Hi" },
  messages: { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
};

/** What each upstream says when it says the least. */
const answers: Record<Dialect, JsonObject> = {
  chat: {
    id: "c1",
    choices: [{ message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  },
  responses: {
    id: "r1",
    status: "completed",
    output: [{ type: "message", content: [{ type: "output_text", text: "Hi." }] }],
    usage: { input_tokens: 3, output_tokens: 2 },
  },
  messages: {
    id: "msg_1",
    content: [{ type: "text", text: "Hi." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 3, output_tokens: 2 },
  },
};

const has = (value: Json, names: Record<string, true>) =>
  expect(Object.keys(value)).toContainValues(Object.keys(names));

const looks: Record<Dialect, { full(reply: Json): void; stream(events: Json[]): void }> = {
  chat: {
    full(reply) {
      has(reply, declared.completion);
      has(reply.choices[0], declared.choice);
      has(reply.choices[0].message, declared.chatMessage);
      has(reply.usage, declared.chatUsage);
    },
    stream(events) {
      for (const event of events) has(event, declared.chunk);
      for (const choice of events.flatMap(({ choices }) => choices)) has(choice, declared.chunkChoice);
      has(events.at(-1).usage, declared.chatUsage);
    },
  },
  responses: {
    full(reply) {
      has(reply, declared.response);
      expect(reply).toMatchObject({ ...declared.openResponse, completed_at: expect.any(Number) });
      has(reply.usage, declared.responseUsage);
      has(reply.usage.input_tokens_details, declared.inputDetails);
      has(reply.usage.output_tokens_details, declared.outputDetails);
    },
    stream(events) {
      has(events[0].response, declared.response);
      expect(events[0].response).toMatchObject({ ...declared.openResponse, completed_at: null });
      this.full(events.at(-1).response);
    },
  },
  messages: {
    full(reply) {
      has(reply, declared.message);
      has(reply.usage, declared.messageUsage);
    },
    stream(events) {
      this.full(events[0].message);
      has(events.at(-2).delta, declared.messageEnd);
      has(events.at(-2).usage, declared.messageEndUsage);
    },
  },
};

const dialects = Object.keys(looks) as Dialect[];
const pairs = dialects.flatMap((client) => dialects.filter((each) => each !== client).map((each) => [client, each]));

describe.each(pairs as [Dialect, Dialect][])("a client of %s gets from an upstream of %s", (client, upstream) => {
  const ask = (stream: boolean) => codecs[client].decodeRequest({ model: "m", stream, ...questions[client] });
  const events = codecs[upstream].decodeReply(answers[upstream]);

  test("every member that its package declares in a full reply", () => {
    looks[client].full(codecs[client].encodeReply(events, ask(false)));
  });

  test("every member that its package declares in a stream", () => {
    const frames = written(codecs[client].encodeStream(ask(true)), events);
    looks[client].stream(frames.filter(({ data }) => data !== "[DONE]").map(jsonOf));
  });
});

const written40 = codecs.messages.decodeReply({
  ...answers.messages,
  usage: { ...usageOf(40, 30), output_tokens: 2 },
});
const promptDetails: CompletionUsage.PromptTokensDetails = { cached_tokens: 0, cache_write_tokens: 40 };
const inputDetails: ResponseUsage.InputTokensDetails = { cached_tokens: 0, cache_write_tokens: 40 };
test.each<[Dialect, object]>([
  ["chat", { prompt_tokens_details: promptDetails }],
  ["responses", { input_tokens_details: inputDetails }],
  ["messages", usageOf(40, 30)],
])("tokens that were written to the cache have the name that the package of %s declares", (client, expected) => {
  const { usage } = codecs[client].encodeReply(
    written40,
    codecs[client].decodeRequest({ model: "m", ...questions[client] }),
  );
  expect(usage).toEqual(expect.objectContaining(expected));
});

function usageOf(write: number, hour: number) {
  return {
    input_tokens: 3,
    cache_creation_input_tokens: write,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: write - hour, ephemeral_1h_input_tokens: hour },
  };
}

test("a compaction that is asked for does not hinder the counting of the conversation", () => {
  const { decode } = tokenCountFormats.messages;
  const asked = { model: "m", messages: [{ role: "user", content: "Hi" }] };
  expect(decode({ ...asked, compaction: { type: "enabled" } })).toEqual(decode(asked));
});
