/** Writes replies of the gemini dialect. Each piece of a stream is a whole `GenerateContentResponse`. */
import { jsonFrame, type SseFrame } from "../../net/sse";
import type { Sink } from "../../net/stream";
import type { ClientSink, ToClient } from "../codec";
import type { Conversation, JsonObject, Signature } from "../hub/conversation";
import { textPlace, writeDeltas } from "../hub/delta-frames";
import { omitUndefined } from "../hub/json";
import type { Block, BlockEnd, ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { EventWriter, type Finish, wholeReply } from "../hub/reply-writing";
import { inputObject } from "../hub/tool-input";
import { streamError } from "./errors";
import { type Grounding, groundingFor } from "./grounding";
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
  pause: "STOP",
};

// ── Full reply ──

/** Writes a full reply. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const parts: JsonObject[] = [];
  const writer = partWriter(conversation);
  const grounding = groundingFor(conversation);
  const { id, usage, blocks, finish } = wholeReply(events);
  for (const { block, text, end } of blocks) {
    parts.push(...writer.whole(block, text, end.signature));
    grounding?.block(block);
    if (block.kind === "text") grounding?.text(text, end.citations ?? []);
  }
  const last = writer.last();
  if (last || parts.length === 0) parts.push(last ?? { text: "" });
  return responseOf(conversation, id || randomId(), parts, finish && endingOf(finish, usage, grounding));
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

function endingOf({ reason, explanation }: Finish, usage: Partial<Usage>, grounding: Grounding | undefined) {
  const candidate = omitUndefined({
    finishReason: finishReasons[reason],
    finishMessage: explanation,
    groundingMetadata: grounding?.metadata(),
  });
  return { candidate, usageMetadata: encodeUsage(usage) };
}

const randomId = (): string => crypto.randomUUID().replaceAll("-", "");

// ── Parts ──

/** Writes parts, each with the signature of the thought before it. Thoughts are shown only to clients that asked for them. */
function partWriter({ reasoning }: Conversation) {
  const shows = reasoning?.summary !== undefined;
  let held: Signature | undefined;
  const take = (): JsonObject => {
    const signature = held;
    held = undefined;
    return signature ? { thoughtSignature: encodeSignature(signature) } : {};
  };
  /** A part for a signature that no other part can carry: a thought or the end follows. */
  const last = (): JsonObject | undefined => (held ? { text: "", ...take() } : undefined);
  return {
    shows,
    last,
    take,
    /** Keeps the signature of a thought that ended. */
    hold(signature: Signature | undefined) {
      held = signature;
    },
    call: ({ id, name, freeform }: Block & { kind: "tool-call" }, input: string): JsonObject => ({
      functionCall: { id, name, args: inputObject({ input, freeform }) },
      ...take(),
    }),
    whole(block: Block, text: string, signature: Signature | undefined): JsonObject[] {
      if (block.kind === "tool-call") return [this.call(block, text)];
      if (block.kind === "text") return text === "" ? [] : [{ text, ...take() }];
      if (block.kind !== "thinking") return [];
      const before = last();
      this.hold(signature);
      return [...(before ? [before] : []), ...(text === "" || !shows ? [] : [{ text, thought: true }])];
    },
  };
}

// ── Stream ──

/** Writes a stream. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => new StreamWriter(conversation, next, streamForm(conversation));
}

class StreamWriter extends EventWriter implements ClientSink<ReplyEvent> {
  private readonly parts: ReturnType<typeof partWriter>;
  private readonly grounding: Grounding | undefined;
  private id = "";
  private block: Block | undefined;
  /** The text of the open block: a call is written whole, and citations refer to places in a text. */
  private text = "";
  /** A call that has ended waits for the next event: before an error it would make an incomplete call look complete. */
  private heldCall: JsonObject | undefined;
  /** Writes the deltas of the open block; undefined until its first one, which may carry a signature. */
  private frameOf: ((text: string) => SseFrame) | undefined;

  constructor(
    private readonly conversation: Conversation,
    private readonly next: Sink<SseFrame>,
    private readonly form: StreamForm,
  ) {
    super();
    this.parts = partWriter(conversation);
    this.grounding = groundingFor(conversation);
  }

  override push(event: ReplyEvent) {
    if (this.heldCall && !this.ended && event.type !== "error") this.writeCall();
    super.push(event);
  }

  override end() {
    super.end();
    this.next.end();
  }

  keepAlive() {
    if (this.ended) return;
    if (this.heldCall) this.writeCall();
    this.next.push(this.form.keepAlive());
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
    this.grounding?.block(block);
    const before = block.kind === "thinking" ? this.parts.last() : undefined;
    if (before) this.write([before]);
    this.frameOf = undefined;
  }

  protected addText(text: string) {
    const { block } = this;
    if (block?.kind === "tool-call" || this.grounding) this.text += text;
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

  protected closeBlock({ signature, citations = [] }: BlockEnd) {
    const { block } = this;
    if (block?.kind === "text") this.grounding?.text(this.text, citations);
    if (block?.kind === "tool-call") this.heldCall = this.parts.call(block, this.text);
    else if (block?.kind === "thinking") this.parts.hold(signature);
    this.block = undefined;
  }

  private writeCall() {
    if (this.heldCall) this.write([this.heldCall]);
    this.heldCall = undefined;
  }

  protected finish(event: Finish) {
    const last = this.parts.last() ?? { text: "" };
    this.next.push(
      this.form.last(responseOf(this.conversation, this.id, [last], endingOf(event, this.usage, this.grounding))),
    );
  }

  private response(parts: JsonObject[]): JsonObject {
    return responseOf(this.conversation, this.id, parts, undefined);
  }

  private write(parts: JsonObject[]) {
    this.next.push(this.form.frame(jsonFrame(this.response(parts))));
  }
}
