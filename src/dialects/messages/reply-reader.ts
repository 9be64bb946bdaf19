/** Reads replies of the messages dialect, full or as a stream. Its events match the hub's events. */
import { isObject, numberIn } from "../../lib/json";
import type { ReplyEmitter } from "../hub/block-lifecycle";
import type { JsonObject, Signature, WithExtras } from "../hub/conversation";
import { setField, textIn } from "../hub/json";
import type { Block } from "../hub/reply";
import { inputObject } from "../hub/tool-input";
import { EventReader } from "../hub/upstream-stream";
import { errorIn, invalidEvent, invalidReply } from "./errors";
import { asExtras } from "./extras";
import { deltaTypeOf, stopReasons, textFieldOf } from "./reply-names";
import { toolRunBy } from "./server-tools";
import { decodeUsage } from "./usage";

// ── Full reply ──

function decodeMessage(message: JsonObject, content: unknown[], writer: ReplyEmitter): void {
  writer.start(textIn(message.id), textIn(message.model));
  content.forEach((value, index) => {
    if (!isObject(value)) return;
    const { block, text, end } = readBlock(value);
    writer.open(String(index), block);
    writer.delta(text);
    writer.close(end);
  });
  writer.usage(decodeUsage(message.usage, message));
  writer.readInputChanges(message.input_transformations);
  finish(message, writer);
}

function finish({ stop_reason, stop_sequence, stop_details }: JsonObject, writer: ReplyEmitter): void {
  const raw = typeof stop_reason === "string" ? stop_reason : undefined;
  const explanation = isObject(stop_details) ? textIn(stop_details.explanation) || undefined : undefined;
  const sequence = typeof stop_sequence === "string" ? stop_sequence : undefined;
  writer.finish(stopReasons.get(raw) ?? "stop", raw, sequence, explanation);
}

interface ReadBlock {
  block: Block;
  text: string;
  end: { signature?: Signature } & WithExtras;
}

/** A block of a full reply, or what the start of a block in a stream holds. */
function readBlock(value: JsonObject): ReadBlock {
  switch (value.type) {
    case "text": {
      const { type: _, text, citations, ...rest } = value;
      const end = Array.isArray(citations) && citations.length > 0 ? asExtras({ citations }) : {};
      return { text: textIn(text), block: { kind: "text", ...asExtras(rest) }, end };
    }
    case "thinking": {
      const { type: _, thinking, signature, ...rest } = value;
      return { text: textIn(thinking), block: { kind: "thinking", ...asExtras(rest) }, end: signed(signature) };
    }
    case "redacted_thinking": {
      const { type: _, data, ...rest } = value;
      return { text: "", block: { kind: "thinking", ...asExtras(rest) }, end: signed(data, { redacted: true }) };
    }
    case "tool_use": {
      const { type: _, id, name, input, ...rest } = value;
      const block: Block = { kind: "tool-call", id: textIn(id), name: textIn(name), ...asExtras(rest) };
      return { text: JSON.stringify(input ?? {}), block, end: {} };
    }
    default: {
      const ran = toolRunBy(value);
      return { block: { kind: "foreign", dialect: "messages", value, ...(ran ? { ran } : {}) }, text: "", end: {} };
    }
  }
}

const signed = (proof: unknown, kind: Pick<Signature, "redacted"> = {}): { signature?: Signature } =>
  typeof proof === "string" && proof !== "" ? { signature: { dialect: "messages", value: proof, ...kind } } : {};

// ── Stream ──

/** The open block of a stream. */
interface OpenBlock extends ReadBlock {
  index: number | undefined;
  /** The type of its text deltas; undefined for a foreign block, which is emitted complete when it ends. */
  deltaType: string | undefined;
  /** Whether text of it was emitted. */
  hasText: boolean;
  /** The list among its extras, once it grows. */
  citations?: unknown[];
}

/** A block that began while another one was open. */
interface WaitingBlock {
  value: JsonObject;
  deltas: unknown[];
  hasEnded: boolean;
}

/** Reads the events of a stream. Of blocks that are open at once, the first one is streamed, and the others wait for its end. */
export class StreamReader extends EventReader {
  protected readonly invalid = invalidEvent;
  private open: OpenBlock | undefined;
  /** By their index, in the order in which they began. */
  private readonly waiting = new Map<number | undefined, WaitingBlock>();
  private usage: JsonObject | undefined;
  private ending: JsonObject = {};

  protected readReply(body: unknown) {
    const failure = errorIn(body);
    if (failure) this.failed(failure);
    else if (isObject(body) && Array.isArray(body.content)) decodeMessage(body, body.content, this.writer);
    else this.failed(invalidReply);
  }

  protected read(type: string, event: JsonObject) {
    switch (type) {
      case "message_start":
        return this.start(event.message);
      case "content_block_start":
        return this.startBlock(event.content_block, numberIn(event.index));
      case "content_block_delta":
        return this.addDelta(event.delta, numberIn(event.index));
      case "content_block_stop":
        return this.stopBlock(numberIn(event.index));
      case "message_delta":
        this.endAll();
        if (isObject(event.delta)) this.ending = event.delta;
        // Only where another model has gone on; its list replaces the first one.
        this.writer.readInputChanges(event.input_transformations);
        return this.addUsage(event.usage, event);
      case "message_stop":
        this.endAll();
        return finish(this.ending, this.writer);
      default: {
        const failure = errorIn(event);
        if (failure) this.failed(failure);
      }
    }
  }

  /** Partial text and thinking are kept, with the signature; a partial call is not. */
  protected override settle() {
    const kind = this.open?.block.kind;
    if (kind === "text" || kind === "thinking") this.endBlock();
  }

  private start(message: unknown) {
    if (this.usage || !isObject(message)) return;
    this.writer.readInputChanges(message.input_transformations);
    // Its output tokens count only the first tokens.
    const usage = isObject(message.usage) ? { ...message.usage, output_tokens: undefined } : {};
    const { nanoCredits, ...numbers } = decodeUsage(usage, {});
    this.writer.start(textIn(message.id), textIn(message.model), numbers.input === undefined ? undefined : numbers);
    this.addUsage(usage, message);
  }

  /** `message_delta` repeats and corrects the usage of `message_start`. */
  private addUsage(eventUsage: unknown, extras: JsonObject) {
    this.usage ??= {};
    const { usage } = this;
    if (isObject(eventUsage))
      for (const key of Object.keys(eventUsage)) if (eventUsage[key] != null) setField(usage, key, eventUsage[key]);
    const numbers = decodeUsage(usage, extras);
    if (Object.keys(numbers).length > 0) this.writer.usage(numbers);
  }

  private startBlock(value: unknown, index: number | undefined) {
    if (!isObject(value)) return this.cannotFollow();
    const isBeside = this.open?.index !== undefined && index !== undefined && index !== this.open.index;
    if (!isBeside) {
      this.endBlock();
      return this.begin(value, index);
    }
    if (this.waiting.has(index)) return this.cannotFollow();
    this.waiting.set(index, { value, deltas: [], hasEnded: false });
  }

  private begin(value: JsonObject, index: number | undefined) {
    const begun = readBlock(value);
    const { block } = begun;
    const deltaType = deltaTypeOf(block.kind);
    // A foreign block grows in place, but what was sent stays as it is.
    if (block.kind === "foreign") begun.block = { ...block, value: { ...block.value } };
    this.open = { ...begun, index, deltaType, hasText: false };
    if (deltaType !== undefined) this.writer.open(String(index), begun.block);
    // Input in the start of a call counts only if no input delta follows.
    if (begun.block.kind !== "tool-call") this.writer.delta(begun.text);
  }

  private addDelta(delta: unknown, index: number | undefined) {
    if (!isObject(delta)) return this.cannotFollow();
    const waits = this.waiting.get(index);
    if (waits && !waits.hasEnded) return void waits.deltas.push(delta);
    const { open } = this;
    if (!open || (index !== undefined && index !== open.index)) return this.cannotFollow();
    const field = textFieldOf.get(delta.type);
    if (field === undefined || open.deltaType === undefined) return readOther(open, delta);
    if (delta.type !== open.deltaType) return this.cannotFollow();
    const text = textIn(delta[field]);
    if (text !== "") open.hasText = true;
    this.writer.delta(text);
  }

  private stopBlock(index: number | undefined) {
    const waits = this.waiting.get(index);
    if (waits) {
      waits.hasEnded = true;
      return;
    }
    this.endBlock();
    for (const [next, { value, deltas, hasEnded }] of this.waiting) {
      this.waiting.delete(next);
      this.begin(value, next);
      for (const delta of deltas) this.addDelta(delta, next);
      if (!hasEnded) return;
      this.endBlock();
    }
  }

  private endAll() {
    for (const waits of this.waiting.values()) waits.hasEnded = true;
    this.stopBlock(undefined);
  }

  private endBlock() {
    if (!this.open) return;
    const { block, deltaType, hasText, text, end } = this.open;
    if (deltaType === undefined) this.writer.open("foreign", withInput(block, text));
    else if (!hasText) this.writer.delta(text);
    this.writer.close(end);
    this.open = undefined;
  }
}

/** A delta that is not text: a signature, a citation, or a piece of a foreign block. */
function readOther(open: OpenBlock, delta: JsonObject) {
  const { end, block } = open;
  if (delta.type === "signature_delta") Object.assign(end, signed(delta.signature));
  else if (delta.type === "citations_delta") {
    open.citations ??= listAmong(end);
    open.citations.push(delta.citation);
    end.extras = { anthropic: { citations: open.citations } };
  } else if (delta.type === "input_json_delta") open.text += textIn(delta.partial_json);
  else if (block.kind === "foreign")
    for (const [key, piece] of Object.entries(delta)) {
      const before = block.value[key];
      const isJoined = typeof before === "string" && typeof piece === "string";
      if (key !== "type") setField(block.value, key, isJoined ? before + piece : piece);
    }
}

/** A copy of the citations that a block began with. */
function listAmong({ extras }: WithExtras): unknown[] {
  const citations = extras?.anthropic?.citations;
  return Array.isArray(citations) ? [...citations] : [];
}

function withInput(block: Block, input: string): Block {
  if (block.kind !== "foreign" || input === "") return block;
  return { ...block, value: { ...block.value, input: inputObject({ input }) } };
}
