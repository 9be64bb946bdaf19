/** Writes the answers of /v1/messages. */
import { copilotUsage } from "./accounting";
import type { Model } from "./model";
import type { ReplyContext } from "./model-call";
import type { Call, ModelReply, Usage } from "./parse-prompt";
import { pieces } from "./scripted-replies";
import { sign } from "./signatures";
import type { Frame, Interjections } from "./stream";
import { eventText, type Json, randomId, record } from "./wire";

const overloaded = eventText("error", { error: { type: "overloaded_error", message: "Overloaded" } });
export const messageInterjections: Interjections = {
  error: overloaded,
  failed: overloaded,
  ping: eventText("ping", {}),
};

export function wholeMessage(context: ReplyContext): Json {
  const { reply, model } = context;
  return {
    ...envelope(model),
    content: blocks(context).map((block) => block.whole),
    ...ending(reply),
    context_management: { applied_edits: [] },
    usage: usage(reply.usage),
    copilot_usage: copilotUsage(model, reply.usage),
  };
}

/**
 * message_start, (content_block_start, content_block_delta*, content_block_stop)*, message_delta, message_stop.
 * The usage of message_start is a first guess; message_delta corrects it.
 */
export function* messageFrames(context: ReplyContext): Generator<Frame> {
  const { reply, model } = context;
  const frame = (part: Frame["part"], type: string, fields: Json): Frame => ({ part, text: eventText(type, fields) });
  const guess = usage({
    ...reply.usage,
    input: Math.ceil(reply.usage.input / 2),
    cacheRead: 0,
    cacheWrite: 0,
    output: 1,
    reasoning: 0,
  });
  yield frame("opening", "message_start", {
    message: { ...envelope(model), content: [], ...unended, usage: guess },
  });
  for (const [index, { begun, deltas }] of blocks(context).entries()) {
    yield frame("content", "content_block_start", { index, content_block: begun });
    if (index === 0) yield frame("content", "ping", {});
    for (const delta of deltas) yield frame("content", "content_block_delta", { index, delta });
    yield frame("content", "content_block_stop", { index });
  }
  yield frame("finish", "message_delta", {
    delta: ending(reply),
    usage: usage(reply.usage),
    context_management: { applied_edits: [] },
    copilot_usage: copilotUsage(model, reply.usage),
  });
  yield frame("end", "message_stop", {});
  // One of the hosts behind this endpoint adds the chat dialect's last line.
  if (backend(model) === "vrtx") yield { part: "end", text: "data: [DONE]\n\n" };
}

/** The prefixes of ids show which host serves the model. */
const backend = (model: Model) => (model.id.includes("opus") ? "vrtx" : "bdrk");

const envelope = (model: Model): Json => ({
  id: randomId(`msg_${backend(model)}_01`, 22),
  type: "message",
  role: "assistant",
  model: model.answersAs,
});

interface Block {
  whole: Json;
  begun: Json;
  deltas: Iterable<Json>;
}

function blocks({ reply, model, body, isNewest, account }: ReplyContext): Block[] {
  const { display = isNewest && model.traits.has("adaptive-only") ? "omitted" : "summarized" } = record(body.thinking);
  const omitted = display === "omitted";
  const login = model.traits.has("bound") ? account.login : undefined;
  return [
    ...(reply.thinking.length > 0 ? [thinkingBlock(reply, omitted, login)] : []),
    ...(reply.text.length > 0 ? [textBlock(reply.text)] : []),
    ...reply.calls.map((call) => toolBlock(call, model)),
  ];
}

/** @param login The account that the thinking is bound to. */
function thinkingBlock(reply: ModelReply, omitted: boolean, login: string | undefined): Block {
  const thought = reply.thinking.join("");
  if (reply.redacted) {
    const whole = { type: "redacted_thinking", data: sign(thought, "", "redacted_thinking", login) };
    return { whole, begun: whole, deltas: [] };
  }
  const shown = omitted ? [] : reply.thinking;
  const signature = sign(thought, shown.join(""), "thinking", login);
  return {
    whole: { type: "thinking", thinking: shown.join(""), signature },
    begun: { type: "thinking", thinking: "", signature: "" },
    deltas: [
      ...shown.map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ],
  };
}

const textBlock = (parts: string[]): Block => ({
  whole: { type: "text", text: parts.join("") },
  begun: { type: "text", text: "" },
  deltas: parts.map((text) => ({ type: "text_delta", text })),
});

function toolBlock({ tool, input }: Call, model: Model): Block {
  const identity = { type: "tool_use", id: randomId(`toolu_${backend(model)}_01`, 22), name: tool.name };
  const written = ["", ...pieces(JSON.stringify(input), 8)];
  return {
    whole: { ...identity, input },
    begun: { ...identity, input: {} },
    deltas: written.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  };
}

const stopReasons: Record<ModelReply["finish"], string> = {
  stop: "end_turn",
  tool: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
  "stop-sequence": "stop_sequence",
};

const unended = { stop_details: null, stop_reason: null, stop_sequence: null };

const ending = ({ finish, stopSequence }: ModelReply): Json => ({
  ...unended,
  stop_reason: stopReasons[finish],
  stop_sequence: finish === "stop-sequence" ? (stopSequence ?? null) : null,
});

/** `input_tokens` does not include tokens read from the cache or written to it. Thinking is counted only where there was some. */
const usage = ({ input, cacheRead, cacheWrite, output, reasoning }: Usage): Json => ({
  cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: cacheWrite },
  input_tokens: input - cacheRead - cacheWrite,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
  output_tokens: output,
  ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
});
