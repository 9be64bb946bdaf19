/** Writes chat completions, full or as a stream. */
import { isObject } from "../../lib/json";
import { commentFrame, jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { ToClient } from "../codec";
import type { Conversation, JsonObject } from "../hub/conversation";
import { textPlace, writeDeltas } from "../hub/delta-frames";
import { omitUndefined } from "../hub/json";
import {
  type Block,
  type BlockEnd,
  type DeltaBlock,
  isDeltaBlock,
  type ReplyError,
  type ReplyEvent,
  type StopReason,
} from "../hub/reply";
import { type Finish, FrameWriter, gatheredReply } from "../hub/reply-writing";
import { packSignature } from "../hub/signature";
import { citationsOf } from "./citations";
import { errorFrame } from "./errors";
import { now } from "./fixups";
import { encodeUsage } from "./usage";

const finishReasons: Record<StopReason, string> = {
  stop: "stop",
  "stop-sequence": "stop",
  length: "length",
  "tool-call": "tool_calls",
  refusal: "content_filter",
  pause: "length",
};

// ── Stream ──

/** Writes the chunks of one reply. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => new StreamWriter(conversation, next);
}

class StreamWriter extends FrameWriter {
  private readonly created = now();
  private id = "";
  private block: Block | undefined;
  /** Writes the deltas of the open block. */
  private frameOf: ((text: string) => SseFrame) | undefined;
  private hasText = false;
  /** The open block's, of thinking. */
  private thought = "";
  private refused = false;
  private calls = -1;
  /** Length of the content: so far, and before the open block. */
  private length = 0;
  private before = 0;

  protected beat(): SseFrame {
    return commentFrame("keep-alive");
  }

  protected writeError(error: ReplyError) {
    this.next.push(errorFrame(error));
  }

  protected start(id: string) {
    this.id = id || `chatcmpl-${crypto.randomUUID()}`;
    this.write({ role: "assistant", content: "" });
  }

  protected openBlock(block: Block) {
    this.block = block;
    this.hasText = false;
    this.thought = "";
    if (block.kind === "text" && block.refusal) this.refused = true;
    if (block.kind === "tool-call") this.write({ tool_calls: [{ index: ++this.calls, ...callOf(block, "") }] });
    this.frameOf = isDeltaBlock(block) ? writeDeltas(undefined, this.withDelta(deltaOf(block, this.calls))) : undefined;
  }

  protected addText(text: string) {
    const { block, frameOf } = this;
    this.hasText = true;
    if (block?.kind === "text" && !block.refusal) this.length += text.length;
    if (block?.kind === "thinking") this.thought += text;
    if (frameOf) this.next.push(frameOf(text));
  }

  protected closeBlock(end: BlockEnd) {
    const { block } = this;
    const annotations = block?.kind === "text" ? citationsOf(end, this.before) : [];
    if (annotations.length > 0) this.write({ annotations });
    this.before = this.length;
    if (block?.kind === "thinking" && end.signature)
      this.write({ reasoning_opaque: packSignature(end.signature, "chat", this.thought) });
    if (block?.kind === "tool-call" && !this.hasText && !block.freeform) this.addText("{}");
    this.block = undefined;
    this.frameOf = undefined;
  }

  protected finish({ reason, explanation }: Finish) {
    // The explanation is not the model's text; the finish reason still says that the reply was stopped.
    if (explanation && !this.refused) this.write({ refusal: explanation });
    const finish_reason = finishReasonOf(reason, this.refused);
    this.writeChunk({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason }] });
    const usage = wantsUsage(this.conversation) && encodeUsage(this.usage);
    if (usage) this.writeChunk({ choices: [], usage });
    this.next.push({ data: "[DONE]" });
  }

  private write(delta: JsonObject) {
    this.next.push(jsonFrame(this.withDelta(delta)));
  }

  private writeChunk(members: JsonObject) {
    this.next.push(jsonFrame(this.chunk(members)));
  }

  private withDelta(delta: JsonObject): JsonObject {
    return this.chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] });
  }

  private chunk(members: JsonObject): JsonObject {
    const { id, created } = this;
    return { id, object: "chat.completion.chunk", created, model: this.conversation.model, ...members };
  }
}

/** A delta of the block, without its text. */
function deltaOf(block: DeltaBlock, call: number): JsonObject {
  if (block.kind === "thinking") return { reasoning_text: textPlace };
  if (block.kind === "tool-call") return { tool_calls: [{ index: call, ...inputOf(block, textPlace) }] };
  return block.refusal ? { refusal: textPlace } : { content: textPlace };
}

// ── Full reply ──

/** Writes the events as one chat completion. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const { id, usage, blocks, finish } = gatheredReply(events);
  const texts = { content: "", refusal: "", reasoning_text: "" };
  const calls: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  let opaque: string | undefined;
  for (const { block, text, end } of blocks) {
    if (block.kind === "text") {
      annotations.push(...citationsOf(end, texts.content.length));
      texts[block.refusal ? "refusal" : "content"] += text;
    } else if (block.kind === "thinking") texts.reasoning_text += text;
    else if (block.kind === "tool-call") calls.push(callOf(block, text === "" && !block.freeform ? "{}" : text));
    if (end.signature) opaque = packSignature(end.signature, "chat", text);
  }
  const finish_reason = finish ? finishReasonOf(finish.reason, texts.refusal !== "") : null;
  const message = omitUndefined({
    role: "assistant",
    content: texts.content || (calls.length === 0 && texts.refusal === "" ? "" : null),
    refusal: texts.refusal || finish?.explanation || null,
    annotations: annotations.length > 0 ? annotations : undefined,
    reasoning_text: texts.reasoning_text || undefined,
    reasoning_opaque: opaque,
    tool_calls: calls.length > 0 ? calls : undefined,
  });
  return omitUndefined({
    id: id || `chatcmpl-${crypto.randomUUID()}`,
    object: "chat.completion",
    created: now(),
    model: conversation.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage: encodeUsage(usage),
  });
}

/** A refusal with text finishes with `stop`; without text the finish reason must say it. */
function finishReasonOf(reason: StopReason, refusedInWords: boolean): string {
  return reason === "refusal" && refusedInWords ? "stop" : finishReasons[reason];
}

type CallBlock = Extract<Block, { kind: "tool-call" }>;

function callOf(block: CallBlock, input: string): JsonObject {
  const { id, name } = block;
  return block.freeform
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input } };
}

function inputOf(block: CallBlock, input: string): JsonObject {
  return block.freeform ? { custom: { input } } : { function: { arguments: input } };
}

function wantsUsage(conversation: Conversation): boolean {
  const options = conversation.extras?.openai?.stream_options;
  return isObject(options) && options.include_usage === true;
}
