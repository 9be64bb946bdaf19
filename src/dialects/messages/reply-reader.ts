/** Reads replies of the messages dialect, full or as a stream. Its events match the hub's events. */
import { isObject, numberIn } from "../../lib/json";
import type { Lane, ReplyEmitter } from "../hub/block-lifecycle";
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
  const lane = writer.lane();
  for (const value of content) {
    if (!isObject(value)) continue;
    const { block, text, end } = readBlock(value);
    lane.open(block);
    lane.delta(text);
    lane.close(end);
  }
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

/** A block of a stream that has not ended. */
interface OpenBlock extends ReadBlock {
  lane: Lane;
  /** The type of its text deltas; undefined for a foreign block, which is emitted complete when it ends. */
  deltaType: string | undefined;
  /** Whether text of it was emitted. */
  hasText: boolean;
  /** The list among its extras, once it grows. */
  citations?: unknown[];
}

/** Reads the events of a stream. */
export class StreamReader extends EventReader {
  protected readonly invalid = invalidEvent;
  /** By their indexes, in the order in which they began. */
  private readonly open = new Map<number | undefined, OpenBlock>();
  private usage: JsonObject | undefined;
  private ending: JsonObject = {};

  protected readReply(body: unknown) {
    const failure = errorIn(body);
    if (failure) this.failed(failure);
    else if (isObject(body) && Array.isArray(body.content)) decodeMessage(body, body.content, this.writer);
    else this.failed(invalidReply);
  }

  protected read(type: string, event: JsonObject) {
    const index = numberIn(event.index);
    switch (type) {
      case "message_start":
        return this.start(event.message);
      case "content_block_start":
        return this.begin(event.content_block, index);
      case "content_block_delta":
        return this.addDelta(event.delta, this.open.get(this.keyOf(index)));
      case "content_block_stop":
        return this.endBlock(this.keyOf(index));
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

  /** What names no block is about the first one that is open. */
  private keyOf(index: number | undefined): number | undefined {
    return index ?? this.open.keys().next().value;
  }

  /** Partial text and thinking are kept, with the signature; a partial call is not. */
  protected override settle() {
    const [first] = this.open.values();
    if (first && first.block.kind !== "foreign" && first.block.kind !== "tool-call") close(first);
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

  private begin(value: unknown, index: number | undefined) {
    if (!isObject(value)) return this.cannotFollow();
    // A block without an index stands alone.
    if (index === undefined || this.open.has(undefined)) this.endAll();
    else this.endBlock(index);
    const begun = readBlock(value);
    const { block } = begun;
    const lane = this.writer.lane();
    const deltaType = deltaTypeOf(block.kind);
    // A foreign block grows in place, but what was sent stays as it is.
    if (block.kind === "foreign") begun.block = { ...block, value: { ...block.value } };
    this.open.set(index, { ...begun, lane, deltaType, hasText: false });
    if (deltaType !== undefined) lane.open(block);
    // Input in the start of a call counts only if no input delta follows.
    if (block.kind !== "tool-call") lane.delta(begun.text);
  }

  private addDelta(delta: unknown, open: OpenBlock | undefined) {
    if (!isObject(delta) || !open) return this.cannotFollow();
    const field = textFieldOf.get(delta.type);
    if (field === undefined || open.deltaType === undefined) return readOther(open, delta);
    if (delta.type !== open.deltaType) return this.cannotFollow();
    const text = textIn(delta[field]);
    if (text !== "") open.hasText = true;
    open.lane.delta(text);
  }

  private endBlock(index: number | undefined) {
    const open = this.open.get(index);
    if (!open) return;
    this.open.delete(index);
    close(open);
    open.lane.end();
  }

  private endAll() {
    for (const index of this.open.keys()) this.endBlock(index);
  }
}

function close({ lane, block, deltaType, hasText, text, end }: OpenBlock) {
  if (deltaType === undefined) lane.open(withInput(block, text));
  else if (block.kind === "tool-call" && !hasText) lane.delta(text);
  lane.close(end);
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
