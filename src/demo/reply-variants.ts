/**
 * Writes the answers of /chat/completions. Each family of models has its own form:
 * GPT numbers parallel calls and sends usage in a last chunk without choices; Claude numbers every call 0, so that only a
 * new id marks a new call, and sends usage in the finish chunk; Gemini is like GPT but shows its reasoning.
 */
import { copilotUsage } from "./accounting";
import type { Model } from "./model";
import type { ReplyContext } from "./model-call";
import type { Call, ModelReply, Usage } from "./parse-prompt";
import { pieces } from "./scripted-replies";
import { sign } from "./signatures";
import type { Frame } from "./stream";
import { type Json, randomId, record } from "./wire";

/** The full answer. GPT sends neither `object` nor `created`. */
export function wholeChat(context: ReplyContext): Json {
  const { model, reply } = context;
  const shared = { usage: usage(model, reply.usage), copilot_usage: copilotUsage(model, reply.usage) };
  if (model.family === "claude")
    return { id: crypto.randomUUID(), model: model.id, ...shared, choices: splitChoices(reply, model) };
  return {
    choices: Array.from({ length: copies(context) }, (_, index) => ({
      finish_reason: finishReason(reply),
      index,
      content_filter_results: safe,
      message: wholeMessage(reply, model),
    })),
    id: randomId("chatcmpl-", 24),
    ...shared,
    model: model.answersAs,
    ...(model.family === "gpt" && { prompt_filter_results: promptFilter, system_fingerprint: "fp_demo000000" }),
  };
}

/** With calls there is no `content`; `padding` is filler of random length. */
function wholeMessage(reply: ModelReply, model: Model): Json {
  const text = reply.text.join("");
  const calls = reply.calls.map((call) => toolCall(call, model));
  return {
    ...(calls.length === 0 && reply.finish !== "refusal" && { content: text }),
    ...(reply.finish === "refusal" && { content: null, refusal: text }),
    ...(model.family === "gpt" && { padding: "abcdefghijklmnopqrstuvwxyz".slice(0, 1 + (text.length % 26)) }),
    role: "assistant",
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(model.family === "gemini" && reasoning(reply)),
  };
}

/** Claude: the text in one choice and each call in its own choice, without numbers. */
function splitChoices(reply: ModelReply, model: Model): Json[] {
  const messages: Json[] = reply.calls.map((call) => ({ role: "assistant", tool_calls: [toolCall(call, model)] }));
  if (reply.text.length > 0 || messages.length === 0)
    messages.unshift({ role: "assistant", content: reply.text.join("") });
  messages[0] = { ...messages[0], ...reasoning(reply) };
  return messages.map((message) => ({ finish_reason: finishReason(reply), message }));
}

const reasoning = (reply: ModelReply): Json => {
  if (reply.thinking.length === 0) return {};
  return { ...(!reply.redacted && { reasoning_text: reply.thinking.join("") }), reasoning_opaque: signed(reply) };
};

export function* chatFrames(context: ReplyContext): Generator<Frame> {
  if (context.model.family === "claude") yield* claudeFrames(context);
  else yield* gptFrames(context);
  yield { part: "end", text: "data: [DONE]\n\n" };
}

function* gptFrames(context: ReplyContext): Generator<Frame> {
  const { reply, model, body, demo } = context;
  const counted = record(body.stream_options).include_usage === true;
  const common = {
    created: Math.floor(demo.now() / 1000),
    id: randomId("chatcmpl-", 24),
    model: model.answersAs,
    object: "chat.completion.chunk",
    system_fingerprint: "fp_demo000000",
    ...(counted && { usage: null }),
  };
  if (model.family === "gpt")
    yield frame("opening", {
      choices: [],
      created: 0,
      id: "",
      model: "",
      object: "",
      prompt_filter_results: promptFilter,
    });
  for (let index = 0; index < copies(context); index += 1) {
    const chunk = (part: Frame["part"], delta: Json, finish_reason: string | null = null, filter: Json = {}) =>
      frame(part, {
        choices: [{ content_filter_results: filter, delta, finish_reason, index, logprobs: null }],
        ...common,
      });
    const hidden = model.family === "gpt";
    for (const piece of reply.redacted ? [] : reply.thinking)
      yield hidden
        ? frame("content", { choices: [{ delta: { cot_summary: piece }, index }], ...common, id: "" })
        : chunk("content", { reasoning_text: piece, role: "assistant" });
    if (!hidden && reply.thinking.length > 0)
      yield chunk("content", { content: "", reasoning_opaque: signed(reply), role: "assistant" });
    if (reply.calls.length === 0) yield chunk("opening", { content: "", refusal: null, role: "assistant" });
    for (const piece of reply.calls.length > 0 ? [] : reply.text)
      yield chunk("content", reply.finish === "refusal" ? { refusal: piece } : { content: piece }, null, safe);
    for (const [at, call] of reply.calls.entries()) {
      const { function: called, ...identity } = toolCall(call, model);
      const first = at === 0 ? { content: null, refusal: null, role: "assistant" } : {};
      const name = record(called).name;
      yield chunk("content", { ...first, tool_calls: [{ function: { arguments: "", name }, ...identity, index: at }] });
      for (const piece of pieces(String(record(called).arguments), 8))
        yield chunk("content", { tool_calls: [{ function: { arguments: piece }, index: at }] });
    }
    yield chunk("finish", {}, finishReason(reply));
    if (hidden && reply.thinking.length > 0)
      yield frame("finish", { choices: [{ delta: { cot_id: randomId("cot_", 12) }, index }], ...common, id: "" });
  }
  if (counted) yield frame("finish", { choices: [], ...common, usage: usage(model, reply.usage) });
  yield frame("finish", { choices: [], ...common, copilot_usage: copilotUsage(model, reply.usage) });
}

/** No `object`, the role on every chunk, `type` on every delta of a call. */
function* claudeFrames({ reply, model, demo }: ReplyContext): Generator<Frame> {
  const common = { created: Math.floor(demo.now() / 1000), id: crypto.randomUUID() };
  const chunk = (delta: Json) =>
    frame("content", {
      choices: [{ index: 0, delta: { ...delta, role: "assistant" } }],
      ...common,
      model: model.id,
    });
  for (const piece of reply.redacted ? [] : reply.thinking) yield chunk({ content: null, reasoning_text: piece });
  if (reply.thinking.length > 0) yield chunk({ content: "", reasoning_opaque: signed(reply) });
  for (const piece of reply.text) yield chunk({ content: piece });
  for (const call of reply.calls) {
    const { function: called, id, type } = toolCall(call, model);
    const { name, arguments: written } = record(called);
    yield chunk({ content: null, tool_calls: [{ function: { name }, id, index: 0, type }] });
    for (const piece of pieces(String(written), 8))
      yield chunk({ content: null, tool_calls: [{ function: { arguments: piece }, index: 0, type }] });
  }
  yield frame("finish", {
    choices: [{ finish_reason: finishReason(reply), index: 0, delta: { content: null } }],
    ...common,
    usage: usage(model, reply.usage),
    copilot_usage: copilotUsage(model, reply.usage),
    model: model.id,
  });
}

const frame = (part: Frame["part"], data: Json): Frame => ({ part, text: `data: ${JSON.stringify(data)}\n\n` });

/** `n` answers; only GPT supports this. */
const copies = ({ body, model }: ReplyContext): number =>
  model.family === "gpt" && typeof body.n === "number" ? Math.max(1, body.n) : 1;

const toolCall = ({ tool, input }: Call, model: Model): Json => ({
  id: model.family === "claude" ? randomId("toolu_bdrk_01", 22) : randomId("call_", 24),
  type: "function",
  function: { name: tool.name, arguments: JSON.stringify(input) },
});

const finishReasons: Record<ModelReply["finish"], string> = {
  stop: "stop",
  "stop-sequence": "stop",
  tool: "tool_calls",
  length: "length",
  refusal: "content_filter",
};
const finishReason = (reply: ModelReply) => finishReasons[reply.finish];

function usage(model: Model, { input, cacheRead, cacheWrite, output, reasoning }: Usage): Json {
  const total = { completion_tokens: output, prompt_tokens: input, total_tokens: input + output };
  if (model.family !== "gpt")
    return {
      ...total,
      prompt_tokens_details: {
        cached_tokens: cacheRead,
        ...(model.family === "claude" && { cache_creation_input_tokens: cacheWrite }),
      },
      ...(reasoning > 0 && { completion_tokens_details: { reasoning_tokens: reasoning } }),
    };
  return {
    ...total,
    completion_tokens_details: {
      accepted_prediction_tokens: 0,
      audio_tokens: 0,
      reasoning_tokens: reasoning,
      rejected_prediction_tokens: 0,
    },
    prompt_tokens_details: { audio_tokens: 0, cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
  };
}

const safe = Object.fromEntries(
  ["hate", "self_harm", "sexual", "violence"].map((name) => [name, { filtered: false, severity: "safe" }]),
);
const promptFilter = [{ prompt_index: 0, content_filter_results: safe }];

/** The signature of what is shown of the thought. */
function signed({ thinking, redacted }: ModelReply): string {
  const thought = thinking.join("");
  return sign(thought, redacted ? "" : thought);
}
