/** Streams in the form in which Copilot sends them, vendor by vendor: for tests and for the bench. */
import type { Dialect } from "../../src/dialects/hub/conversation";

interface StreamForm {
  dialect: Dialect;
  begin: string;
  /** One event of text. @param at How many came before. */
  words(text: string, at: number): string;
  end: string;
}

const data = (json: object) => `data: ${JSON.stringify(json)}\n\n`;
const named = (type: string, json: object) => `event: ${type}\ndata: ${JSON.stringify({ ...json, type })}\n\n`;

const severities = Object.fromEntries(
  ["hate", "self_harm", "sexual", "violence"].map((name) => [name, { filtered: false, severity: "safe" }]),
);
const filter = { error: { code: "", message: "" }, ...severities };
const offsets = (at: number) => ({ check_offset: 1811, start_offset: 1811, end_offset: 1900 + Math.floor(at / 9) });
const output = 400;
const usageOf = (input: number) => ({ completion_tokens: output, prompt_tokens: input, total_tokens: input + output });

/**
 * @param model The id that a client asks for; chat answers with a dated one.
 * @param input Tokens of the prompt.
 */
export const copilotStreams = (model: string, input = 912) => ({
  ...textStreams(model, input),
  ...callStreams(model),
});

const textStreams = (model: string, input: number) =>
  ({
    "chat, OpenAI's own form": openAiChat(model, input),
    "chat, GPT": gptChat(`${model}-2025-04-14`, input),
    "chat, Claude": claudeChat(`${model}-20250929`, input),
    "chat, Gemini": geminiChat(model, input),
    "chat, Gemini thinking": geminiChat(model, input, "reasoning_text"),
    responses: responses(model, input, () => "msg_0123456789abcdef"),
    "responses, an item id for each event": responses(model, input, (at) => btoa(`item ${at}`.padEnd(300, "."))),
    messages: messages(model, input),
    "messages, dated": messages(`${model}-20250929`, input),
  }) satisfies Record<string, StreamForm>;

const callStreams = (model: string) =>
  ({
    "chat, GPT calling a tool": gptCall(`${model}-2025-04-14`),
    "responses, calling a tool": responsesCall(model, (at) => btoa(`item ${at}`.padEnd(300, "."))),
    "messages, calling a tool": messagesCall(`${model}-20250929`),
  }) satisfies Record<string, StreamForm>;

export type FormName = keyof ReturnType<typeof copilotStreams>;

function openAiChat(model: string, input: number): StreamForm {
  const usage = usageOf(input);
  const chunk = (members: object) =>
    data({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1785000000, model, ...members });
  const choice = (delta: object, finish_reason: string | null) => ({
    choices: [{ index: 0, delta, finish_reason, logprobs: null }],
  });
  return {
    dialect: "chat",
    begin: chunk(choice({ role: "assistant", content: "" }, null)),
    words: (content) => chunk({ system_fingerprint: "fp_0", ...choice({ content }, null), usage: null }),
    end: `${chunk(choice({}, "stop"))}${chunk({ choices: [], usage })}data: [DONE]\n\n`,
  };
}

function gptChat(model: string, input = 912): StreamForm {
  const usage = usageOf(input);
  const head = { created: 1785000000, id: "chatcmpl-A5iQJExrRR9lZjObeHBzjesQ5HvT1" };
  const tail = { model, system_fingerprint: "fp_80a1bad4c7" };
  const filtered = { content_filter_offsets: offsets(0), content_filter_results: filter };
  return {
    dialect: "chat",
    begin:
      data({
        choices: [],
        created: 0,
        id: "",
        prompt_filter_results: [{ content_filter_results: filter, prompt_index: 0 }],
      }) + data({ choices: [{ index: 0, ...filtered, delta: { content: "", role: "assistant" } }], ...head, ...tail }),
    words: (content, at) =>
      data({
        choices: [{ index: 0, ...filtered, content_filter_offsets: offsets(at), delta: { content, role: null } }],
        ...head,
        ...tail,
      }),
    end: `${data({ choices: [{ finish_reason: "stop", index: 0, ...filtered, delta: { content: null, role: null } }], ...head, ...tail })}${data({ choices: [], ...head, usage, ...tail })}data: [DONE]\n\n`,
  };
}

function gptCall(model: string): StreamForm {
  const form = gptChat(model);
  const chunk = (delta: object, more = {}) =>
    data({
      choices: [{ ...more, index: 0, delta: { content: null, ...delta } }],
      created: 1785000000,
      id: "chatcmpl-A5iQJExrRR9lZjObeHBzjesQ5HvT1",
      model,
      system_fingerprint: "fp_80a1bad4c7",
    });
  const call = { id: "call_YEMsUraDh71gogljRLa7vyGP", index: 0, type: "function" };
  return {
    ...form,
    begin: chunk({ role: "assistant", tool_calls: [{ function: { arguments: '{"text":"', name: "edit" }, ...call }] }),
    words: (text) => chunk({ tool_calls: [{ function: { arguments: JSON.stringify(text).slice(1, -1) }, index: 0 }] }),
    end: `${chunk({ tool_calls: [{ function: { arguments: '"}' }, index: 0 }] })}${chunk({}, { finish_reason: "tool_calls" })}data: [DONE]\n\n`,
  };
}

function claudeChat(model: string, input: number): StreamForm {
  const usage = usageOf(input);
  const head = { created: 1785000000, id: "ba49856c-7de2-485b-87cd-6ff61c58407e" };
  const choice = (delta: object, at = 0, finish?: string) => ({
    ...(finish ? { finish_reason: finish } : {}),
    index: 0,
    content_filter_offsets: offsets(at),
    content_filter_results: filter,
    delta,
  });
  return {
    dialect: "chat",
    begin: data({ choices: [{ index: 0, delta: { content: "I", role: "assistant" } }], ...head, model }),
    words: (content, at) => data({ choices: [choice({ content, role: "assistant" }, at)], ...head, model }),
    end: `${data({ choices: [choice({ content: null }, 0, "stop")], ...head, usage, model })}data: [DONE]\n\n`,
  };
}

function geminiChat(model: string, input: number, key = "content"): StreamForm {
  const zeros = {
    completion_tokens: 0,
    prompt_tokens: 0,
    prompt_tokens_details: { cached_tokens: 0 },
    total_tokens: 0,
    reasoning_tokens: 0,
  };
  const chunk = (delta: object, at: number, counted: object, finish?: string) =>
    data({
      choices: [{ ...(finish ? { finish_reason: finish } : {}), index: 0, delta: { ...delta, role: "assistant" } }],
      created: 1785000000 + Math.floor(at / 7),
      id: "OdwyabKMI9yel7oPlbzgwQM",
      usage: counted,
      model,
    });
  return {
    dialect: "chat",
    begin: "",
    words: (text, at) => chunk(key === "content" ? { content: text } : { content: null, [key]: text }, at, zeros),
    end: `${chunk({ content: "." }, 0, { ...zeros, ...usageOf(input), reasoning_tokens: 134 }, "stop")}data: [DONE]\n\n`,
  };
}

function responses(model: string, input: number, idAt: (at: number) => string): StreamForm {
  const response = (status: string, output: object[], counted: object | null) => ({
    created_at: 1785000000,
    id: "resp_1",
    model,
    object: "response",
    output,
    status,
    usage: counted,
  });
  const item = (id: string, status: string, content: object[]) => ({
    content,
    id,
    role: "assistant",
    status,
    type: "message",
  });
  const text = { annotations: [], logprobs: [], text: "", type: "output_text" };
  const place = (at: number) => ({ content_index: 0, item_id: idAt(at), output_index: 0 });
  const last = 999_999;
  return {
    dialect: "responses",
    begin:
      named("response.created", { response: response("in_progress", [], null), sequence_number: 0 }) +
      named("response.output_item.added", {
        item: item(idAt(-1), "in_progress", []),
        output_index: 0,
        sequence_number: 1,
      }) +
      named("response.content_part.added", { ...place(-2), part: text, sequence_number: 2 }),
    words: (delta, at) =>
      named("response.output_text.delta", {
        content_index: 0,
        delta,
        item_id: idAt(at),
        logprobs: [],
        output_index: 0,
        sequence_number: 3 + at,
      }),
    end:
      named("response.output_text.done", { ...place(last), sequence_number: last, text: "" }) +
      named("response.output_item.done", {
        item: item(idAt(last), "completed", [text]),
        output_index: 0,
        sequence_number: last + 1,
      }) +
      named("response.completed", {
        copilot_usage: { total_nano_aiu: 1200 },
        response: response("completed", [item(idAt(last + 1), "completed", [text])], {
          input_tokens: input,
          output_tokens: output,
          total_tokens: input + output,
        }),
        sequence_number: last + 2,
      }),
  };
}

function responsesCall(model: string, idAt: (at: number) => string): StreamForm {
  const item = (at: number, status: string, input: string) => ({
    item: { arguments: input, call_id: "call_1", id: idAt(at), name: "edit", status, type: "function_call" },
    output_index: 0,
  });
  const done = { ...item(1_000_000, "completed", "{}"), sequence_number: 1_000_000 };
  return {
    dialect: "responses",
    begin:
      named("response.created", { response: { id: "resp_1", model, output: [] }, sequence_number: 0 }) +
      named("response.output_item.added", { ...item(-1, "in_progress", ""), sequence_number: 1 }),
    words: (text, at) =>
      named("response.function_call_arguments.delta", {
        delta: JSON.stringify(text).slice(1, -1),
        item_id: idAt(at),
        output_index: 0,
        sequence_number: 2 + at,
      }),
    end:
      named("response.output_item.done", done) +
      named("response.completed", {
        response: { id: "resp_2", model, output: [done.item], status: "completed", usage: { input_tokens: 9 } },
        sequence_number: 1_000_001,
      }),
  };
}

function messagesCall(model: string): StreamForm {
  const form = messages(model);
  const delta = (partial_json: string) =>
    named("content_block_delta", { delta: { partial_json, type: "input_json_delta" }, index: 0 });
  return {
    ...form,
    begin:
      form.begin.slice(0, form.begin.indexOf("event: content_block_start")) +
      named("content_block_start", {
        content_block: { id: "toolu_1", input: {}, name: "edit", type: "tool_use" },
        index: 0,
      }) +
      delta('{"text":"'),
    words: (text) => delta(JSON.stringify(text).slice(1, -1)),
    end: `${delta('"}')}${form.end}`,
  };
}

function messages(model: string, input = 912): StreamForm {
  const counted = { input_tokens: input, output_tokens: output };
  return {
    dialect: "messages",
    begin:
      named("message_start", {
        message: {
          content: [],
          id: "msg_vrtx_01",
          model,
          role: "assistant",
          stop_reason: null,
          stop_sequence: null,
          type: "message",
          usage: counted,
        },
      }) + named("content_block_start", { content_block: { text: "", type: "text" }, index: 0 }),
    words: (text) => named("content_block_delta", { delta: { text, type: "text_delta" }, index: 0 }),
    end:
      named("content_block_stop", { index: 0 }) +
      named("message_delta", {
        copilot_usage: { total_nano_aiu: 1200 },
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: counted,
      }) +
      named("message_stop", {}),
  };
}
