/** Writes replies of the messages dialect, full or as a stream. */
import { isObject, numberIn } from "../../lib/json";
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ToClient } from "../codec";
import type { FramedBeat } from "../hub/beat";
import type { Conversation, JsonObject } from "../hub/conversation";
import { textPlace, writeDeltas } from "../hub/delta-frames";
import { randomId } from "../hub/ids";
import {
  type Block,
  type BlockEnd,
  type CompleteBlock,
  isDeltaBlock,
  type ReplyError,
  type ReplyEvent,
} from "../hub/reply";
import { type Finish, FrameWriter, gatheredReply } from "../hub/reply-writing";
import { packSignature } from "../hub/signature";
import { isCompleteInput } from "../hub/tool-input";
import { citationsOf, emptyBlock, startOf, toolUse, writeBlock } from "./block-writer";
import { errorFrame } from "./errors";
import { deltaTypeOf, stopReasonNames, stopReasons, textFieldOf } from "./reply-names";
import { serverToolUsage } from "./server-tools";
import { encodeMessageUsage, encodeUsage } from "./usage";

/** Writes a full reply. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const content: JsonObject[] = [];
  const { id, usage, blocks, finish } = gatheredReply(events);
  for (const { block, text, end } of blocks) {
    // A call that the limit has cut is left out: a client may run it.
    if (finish?.reason === "length" && block.kind === "tool-call" && !isCompleteInput({ input: text, ...block }))
      continue;
    content.push(...writeBlock(block, text, end));
  }
  return {
    ...messageOf(id, conversation, content),
    ...(finish && writeEnding(finish, content.some(isToolUse))),
    usage: { ...encodeMessageUsage(usage), ...serverToolUsage(blocks.map(({ block }) => block)) },
  };
}

/** A message that has not ended; what only Anthropic's own service gives is null. */
const messageOf = (id: string, { model }: Conversation, content: JsonObject[]): JsonObject => ({
  id: id.startsWith("msg_") ? id : `msg_${randomId()}`,
  type: "message",
  role: "assistant",
  model,
  content,
  diagnostics: null,
  ...unended,
});

/** The members that tell how a message ended. */
const unended = { container: null, stop_reason: null, stop_sequence: null, stop_details: null };

const isToolUse = (block: JsonObject): boolean => block.type === "tool_use";

function writeEnding(event: Finish, called: boolean): JsonObject {
  const { reason, raw, stopSequence, explanation } = event;
  // Clients run tools only if the stop reason is `tool_use`.
  const stopped = reason === "stop" && called ? "tool-call" : reason;
  const word = raw !== undefined && stopReasons.get(raw) === stopped ? raw : stopReasonNames[stopped];
  const stop_details = explanation ? { type: "refusal", category: null, explanation } : null;
  return { ...unended, stop_reason: word, stop_sequence: stopSequence ?? null, stop_details };
}

/** Writes a stream. */
export const encodeStream =
  (conversation: Conversation, estimate?: () => number | undefined): ToClient<ReplyEvent> =>
  (next) =>
    new StreamWriter(conversation, next, estimate);

class StreamWriter extends FrameWriter {
  private readonly ran: CompleteBlock[] = [];
  private block: Block | undefined;
  private index = -1;
  /** Writes the block's deltas; undefined until its start is written, which waits for the first text. */
  private frameOf: ((text: string) => SseFrame) | undefined;
  private hasText = false;
  private called = false;
  /** The stop of a call waits for the next event: before an error it would make an incomplete call look complete. */
  private heldStop = false;

  constructor(
    conversation: Conversation,
    next: Sink<SseFrame>,
    private readonly estimate?: () => number | undefined,
  ) {
    super(conversation, next);
  }

  /** Upstreams may send blocks that are not written here, empty ones: the next block has the number after theirs. */
  follow({ type, json }: FramedBeat) {
    if (type === "content_block_stop") this.index = numberIn(json.index) ?? this.index;
  }

  override push(event: ReplyEvent) {
    if (this.heldStop && !this.ended && event.type !== "error") this.stop();
    super.push(event);
  }

  protected beat(): SseFrame {
    if (this.heldStop) this.stop();
    return pingFrame();
  }

  protected writeError(error: ReplyError) {
    if (this.frameOf && this.block?.kind !== "tool-call") this.stop();
    this.next.push(errorFrame(error));
  }

  private write(event: JsonObject & { type: string }) {
    this.next.push(jsonFrame(event, event.type));
  }

  protected start(id: string) {
    // An estimate moves the client's meter; the upstream's numbers follow in `message_delta`.
    this.usage.input ??= this.estimate?.();
    const message = { ...messageOf(id, this.conversation, []), usage: encodeMessageUsage(this.usage) };
    this.write({ type: "message_start", message });
  }

  protected openBlock(block: Block) {
    this.block = block;
    this.hasText = false;
    if (block.kind !== "tool-call") return;
    this.called = true;
    this.startBlock(toolUse(block), block.kind);
    if (block.freeform) this.writeText('{"input":"');
  }

  protected addText(text: string) {
    const { block } = this;
    if (!block || !isDeltaBlock(block)) return;
    if (!this.frameOf) this.startBlock(emptyBlock(block), block.kind);
    this.writeText(block.kind === "tool-call" && block.freeform ? JSON.stringify(text).slice(1, -1) : text);
  }

  protected closeBlock(end: BlockEnd) {
    const { block } = this;
    if (!block) return;
    if (block.kind === "tool-call") {
      if (block.freeform || !this.hasText) this.writeText(block.freeform ? '"}' : "{}");
      this.heldStop = true;
      return;
    }
    if (!isDeltaBlock(block)) this.ran.push(block);
    const [whole] = this.frameOf ? [] : writeBlock(block, "", end);
    if (whole) this.startBlock(startOf(whole), block.kind);
    if (!this.frameOf) return;
    if (whole && isObject(whole.input)) this.writeText(JSON.stringify(whole.input));
    for (const citation of citationsOf(end)) this.writeDelta({ type: "citations_delta", citation });
    if (end.signature && whole?.type !== "redacted_thinking")
      this.writeDelta({ type: "signature_delta", signature: packSignature(end.signature, "messages") });
    this.stop();
  }

  private startBlock(content_block: JsonObject, kind: Block["kind"]) {
    const index = ++this.index;
    const type = deltaTypeOf(kind) ?? "input_json_delta";
    this.write({ type: "content_block_start", index, content_block });
    const delta = { type, [textFieldOf.get(type) ?? ""]: textPlace };
    this.frameOf = writeDeltas("content_block_delta", { type: "content_block_delta", index, delta });
  }

  private writeText(text: string) {
    this.hasText = true;
    if (this.frameOf) this.next.push(this.frameOf(text));
  }

  /** A delta that is not text. */
  private writeDelta(delta: JsonObject) {
    this.write({ type: "content_block_delta", index: this.index, delta });
  }

  private stop() {
    this.write({ type: "content_block_stop", index: this.index });
    this.frameOf = undefined;
    this.heldStop = false;
  }

  protected finish(event: Finish) {
    const usage = { ...encodeUsage(this.usage), ...serverToolUsage(this.ran) };
    this.write({ type: "message_delta", delta: writeEnding(event, this.called), usage });
    this.write({ type: "message_stop" });
  }
}

export const pingFrame = (): SseFrame => jsonFrame({ type: "ping" }, "ping");
