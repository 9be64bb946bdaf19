/** Writes replies of the gemini dialect. Each piece of a stream is a whole `GenerateContentResponse`. */
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ToClient } from "../codec";
import type { Conversation, JsonObject, Signature } from "../hub/conversation";
import { textPlace, writeDeltas } from "../hub/delta-frames";
import { randomId } from "../hub/ids";
import { omitUndefined } from "../hub/json";
import type { Block, BlockEnd, ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { type Finish, FrameWriter, gatheredReply } from "../hub/reply-writing";
import { inputObject, isCompleteInput } from "../hub/tool-input";
import { streamError } from "./errors";
import { encodeSignature } from "./signature";
import { type StreamForm, streamForm } from "./stream-form";
import { encodeUsage } from "./usage";

/** A call ends with STOP too. */
const finishReasons: Record<StopReason, string> = {
  stop: "STOP",
  "stop-sequence": "STOP",
  length: "MAX_TOKENS",
  "tool-call": "STOP",
  refusal: "SAFETY",
  pause: "MAX_TOKENS",
};

// ── Full reply ──

/** Writes a full reply. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const parts: JsonObject[] = [];
  const writer = partWriter(conversation);
  const { id, usage, blocks, finish } = gatheredReply(events);
  const isCut = isCutCall(finish);
  let isMalformed = false;
  blocks.forEach(({ block, text, end }, at) => {
    if (block.kind === "tool-call" && (!isWhole(block, text) || (isCut && at === blocks.length - 1)))
      isMalformed ||= !isCut;
    else parts.push(...writer.whole(block, text, end.signature));
  });
  const last = writer.last();
  if (last || parts.length === 0) parts.push(last ?? { text: "" });
  const ending = finish && endingOf(finish, usage, isMalformed);
  return responseOf(conversation, id || randomId(), parts, ending);
}

/** Clients' chat sessions take a reply without parts for a failed one. */
function responseOf(
  { model }: Conversation,
  responseId: string,
  parts: JsonObject[],
  ending: { candidate: JsonObject; usageMetadata: JsonObject | undefined } | undefined,
): JsonObject {
  const { candidate, usageMetadata } = ending ?? {};
  return omitUndefined({
    candidates: [{ content: { parts, role: "model" }, ...candidate, index: 0 }],
    usageMetadata,
    modelVersion: model,
    responseId,
  });
}

function endingOf({ reason, explanation }: Finish, usage: Partial<Usage>, isMalformed: boolean) {
  const candidate = omitUndefined({
    finishReason: isMalformed ? "MALFORMED_FUNCTION_CALL" : finishReasons[reason],
    finishMessage: explanation,
  });
  return { candidate, usageMetadata: encodeUsage(usage) };
}

type CallBlock = Block & { kind: "tool-call" };

/**
 * Google never sends a part of a call, so that its packages run every call, whatever the finish reason is
 * (@google/genai 3.1). A call that is not whole is left out.
 */
const isWhole = ({ freeform }: CallBlock, input: string): boolean => isCompleteInput({ input, freeform });

/** The last call of a reply that ended at its limit may be cut, even if what there is of it is JSON. */
const isCutCall = (finish: Finish | undefined): boolean => finish?.reason === "length";

// ── Parts ──

/** Writes parts, each with the signature of the thought before it. Thoughts are shown only to clients that asked for them. */
function partWriter({ reasoning }: Conversation) {
  const shows = reasoning?.summary !== undefined;
  let held: string | undefined;
  const take = (): JsonObject => {
    const thoughtSignature = held;
    held = undefined;
    return thoughtSignature === undefined ? {} : { thoughtSignature };
  };
  /** A part for a signature that no other part can carry: a thought or the end follows. */
  const last = (): JsonObject | undefined => (held === undefined ? undefined : { text: "", ...take() });
  return {
    shows,
    last,
    take,
    /** Keeps the signature of a thought that ended. */
    hold(signature: Signature | undefined, text: string) {
      held = signature && encodeSignature(signature, text);
    },
    call: ({ id, name, freeform }: CallBlock, input: string): JsonObject => ({
      functionCall: { id, name, args: inputObject({ input, freeform }) },
      ...take(),
    }),
    whole(block: Block, text: string, signature: Signature | undefined): JsonObject[] {
      if (block.kind === "tool-call") return [this.call(block, text)];
      if (block.kind === "text") return text === "" ? [] : [{ text, ...take() }];
      if (block.kind !== "thinking") return [];
      const before = last();
      this.hold(signature, text);
      return [...(before ? [before] : []), ...(text === "" || !shows ? [] : [{ text, thought: true }])];
    },
  };
}

// ── Stream ──

/** Writes a stream. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => new StreamWriter(conversation, next, streamForm(conversation));
}

class StreamWriter extends FrameWriter {
  private readonly parts: ReturnType<typeof partWriter>;
  private id = "";
  private block: Block | undefined;
  /** The input of the open call, which is written whole, or the open thought. */
  private text = "";
  /** A call that has ended waits for what follows: before an error, or at the output limit, it may be incomplete. */
  private heldCall: { block: CallBlock; input: string } | undefined;
  /** A call was left out although the reply was not cut. */
  private isMalformed = false;
  /** Writes the deltas of the open block; undefined until its first one, which may carry a signature. */
  private frameOf: ((text: string) => SseFrame) | undefined;

  constructor(
    conversation: Conversation,
    next: Sink<SseFrame>,
    private readonly form: StreamForm,
  ) {
    super(conversation, next);
    this.parts = partWriter(conversation);
  }

  get type(): string | undefined {
    return this.form.type;
  }

  override push(event: ReplyEvent) {
    const isNext = event.type === "block-start" || event.type === "finish";
    if (this.heldCall && !this.ended && isNext) this.writeCall(event.type === "finish" && isCutCall(event));
    super.push(event);
  }

  protected beat(): SseFrame {
    return this.form.keepAlive();
  }

  protected writeError(error: ReplyError) {
    this.next.push(this.form.last(streamError(error)));
  }

  protected start(id: string) {
    this.id = id || randomId();
  }

  protected openBlock(block: Block) {
    this.block = block;
    this.text = "";
    const before = block.kind === "thinking" ? this.parts.last() : undefined;
    if (before) this.write([before]);
    this.frameOf = undefined;
  }

  protected addText(text: string) {
    const { block } = this;
    if (block?.kind === "tool-call" || block?.kind === "thinking") this.text += text;
    if (block?.kind === "tool-call") return;
    if (this.frameOf) this.next.push(this.form.frame(this.frameOf(text)));
    else if (block?.kind === "text") {
      this.write([{ text, ...this.parts.take() }]);
      this.frameOf = writeDeltas(undefined, this.response([{ text: textPlace }]));
    } else if (block?.kind === "thinking" && this.parts.shows) {
      this.frameOf = writeDeltas(undefined, this.response([{ text: textPlace, thought: true }]));
      this.next.push(this.form.frame(this.frameOf(text)));
    }
  }

  protected closeBlock({ signature }: BlockEnd) {
    const { block, text } = this;
    if (block?.kind === "tool-call") this.heldCall = { block, input: text };
    else if (block?.kind === "thinking") this.parts.hold(signature, text);
    this.block = undefined;
  }

  private writeCall(isCut: boolean) {
    const { block, input } = this.heldCall!;
    this.heldCall = undefined;
    if (!isCut && isWhole(block, input)) this.write([this.parts.call(block, input)]);
    else this.isMalformed ||= !isCut;
  }

  protected finish(event: Finish) {
    const last = this.parts.last() ?? { text: "" };
    const ending = endingOf(event, this.usage, this.isMalformed);
    this.next.push(this.form.last(responseOf(this.conversation, this.id, [last], ending)));
  }

  private response(parts: JsonObject[]): JsonObject {
    return responseOf(this.conversation, this.id, parts, undefined);
  }

  private write(parts: JsonObject[]) {
    this.next.push(this.form.frame(jsonFrame(this.response(parts))));
  }
}
