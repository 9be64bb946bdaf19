/** Replies of the messages dialect, full and as a stream. Its events match the hub's events. */
import { isObject, numberIn } from "../../json";
import { jsonFrame, type SseFrame } from "../../net/sse";
import type { Sink, Stage } from "../../net/stream";
import type { ClientSink, ToClient } from "../codec";
import { cutReply, type ReplyWriter, replyWriter } from "../hub/block-lifecycle";
import type { Conversation, JsonObject, Signature, WithExtras } from "../hub/conversation";
import { omit, textIn } from "../hub/json";
import type { Block, ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { deltaReader } from "../hub/text-delta";
import { errorFrame, errorIn, invalidEvent, invalidReply } from "./errors";
import { asExtras, restoreExtras } from "./extras";
import { inputObject } from "./parts";
import { decodeUsage, encodeUsage } from "./usage";

// ── Wire facts ──

const knownFields = {
  text: new Set(["type", "text", "citations"]),
  thinking: new Set(["type", "thinking", "signature"]),
  redactedThinking: new Set(["data"]),
  toolUse: new Set(["type", "id", "name", "input"]),
};

// ── Tables ──

const stopReasons = new Map<unknown, StopReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop-sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool-call"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"],
]);

const stopReasonNames: Record<StopReason, string> = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-call": "tool_use",
  refusal: "refusal",
  pause: "pause_turn",
};

const deltaTypes: Record<Block["kind"], string | undefined> = {
  text: "text_delta",
  thinking: "thinking_delta",
  "tool-call": "input_json_delta",
  foreign: undefined,
};

/** The field that holds a delta's text. */
const textFieldOf = new Map<unknown, string>([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"],
]);

// ── Decode ──

/** Reads a full reply. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const writer = replyWriter({ push: (event) => void events.push(event), end() {} });
  const failure = errorIn(body);
  if (failure) writer.error(failure.code, failure.message);
  else if (isObject(body) && Array.isArray(body.content)) decodeMessage(body, body.content, writer);
  else writer.error(invalidReply.code, invalidReply.message);
  return events;
}

function decodeMessage(message: JsonObject, content: unknown[], writer: ReplyWriter): void {
  writer.start(textIn(message.id), textIn(message.model));
  content.forEach((value, index) => {
    if (!isObject(value)) return;
    const { block, text, end } = readBlock(value);
    writer.open(String(index), block);
    writer.delta(text);
    writer.close(end);
  });
  writer.usage(decodeUsage(message.usage, message));
  finish(message, writer);
}

function finish({ stop_reason, stop_sequence, stop_details }: JsonObject, writer: ReplyWriter): void {
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
      const citations =
        Array.isArray(value.citations) && value.citations.length > 0 ? { citations: value.citations } : undefined;
      return {
        block: { kind: "text", ...asExtras(omit(value, knownFields.text)) },
        text: textIn(value.text),
        end: asExtras(citations),
      };
    }
    case "thinking":
      return {
        block: { kind: "thinking", ...asExtras(omit(value, knownFields.thinking)) },
        text: textIn(value.thinking),
        end: signed(value.signature),
      };
    case "redacted_thinking":
      return {
        block: { kind: "thinking", ...asExtras(omit(value, knownFields.redactedThinking)) },
        text: "",
        end: signed(value.data),
      };
    case "tool_use": {
      const call = { id: textIn(value.id), name: textIn(value.name), ...asExtras(omit(value, knownFields.toolUse)) };
      return { block: { kind: "tool-call", ...call }, text: JSON.stringify(value.input ?? {}), end: {} };
    }
    default:
      return { block: { kind: "foreign", dialect: "messages", value }, text: "", end: {} };
  }
}

const signed = (proof: unknown): { signature?: Signature } =>
  typeof proof === "string" && proof !== "" ? { signature: { dialect: "messages", value: proof } } : {};

/** The open block of a stream. */
interface OpenBlock extends ReadBlock {
  index: number | undefined;
  /** The type of its text deltas; undefined for a foreign block, which is emitted complete when it ends. */
  deltaType: string | undefined;
  /** Whether text of it was emitted. */
  hasText: boolean;
}

/** Reads a stream. */
export const decodeStream = (): Stage<SseFrame, ReplyEvent> => (next) => {
  const writer = replyWriter(next);
  const read = deltaReader(deltaText);
  let open: OpenBlock | undefined;
  let usage: JsonObject | undefined;
  let ending: JsonObject = {};

  const breakOff = ({ code, message }: Omit<ReplyError, "type">) => {
    // Partial text and thinking are kept, with the signature; a partial call is not.
    if (open?.block.kind === "text" || open?.block.kind === "thinking") close();
    writer.error(code, message);
  };
  const fail = () => breakOff(invalidEvent);

  /** `message_delta` repeats and corrects the usage of `message_start`. */
  const updateUsage = (eventUsage: unknown, extras: JsonObject) => {
    usage = { ...usage };
    if (isObject(eventUsage))
      for (const key of Object.keys(eventUsage)) if (eventUsage[key] != null) usage[key] = eventUsage[key];
    const numbers = decodeUsage(usage, extras);
    if (Object.keys(numbers).length > 0) writer.usage(numbers);
  };

  const close = () => {
    if (!open) return;
    const { block, deltaType, hasText, text, end } = open;
    if (deltaType === undefined) writer.open("foreign", withInput(block, text));
    else if (!hasText) writer.delta(text);
    writer.close(end);
    open = undefined;
  };

  const startBlock = (value: unknown, index: number | undefined) => {
    close();
    if (!isObject(value)) return fail();
    const begun = readBlock(value);
    const deltaType = deltaTypes[begun.block.kind];
    open = { ...begun, index, deltaType, hasText: false };
    if (deltaType !== undefined) writer.open(String(index), begun.block);
    // Input in the start of a call counts only if no input delta follows.
    if (begun.block.kind !== "tool-call") writer.delta(begun.text);
  };

  const handlers = new Map<unknown, (event: JsonObject) => void>([
    [
      "message_start",
      ({ message }) => {
        if (usage || !isObject(message)) return;
        writer.start(textIn(message.id), textIn(message.model));
        // Its output tokens count only the first tokens.
        updateUsage(isObject(message.usage) ? { ...message.usage, output_tokens: undefined } : {}, message);
      },
    ],
    ["content_block_start", ({ content_block, index }) => startBlock(content_block, numberIn(index))],
    [
      "content_block_delta",
      ({ delta, index: rawIndex }) => {
        if (!isObject(delta)) return fail();
        const index = numberIn(rawIndex);
        const field = textFieldOf.get(delta.type);
        if (!open && delta.type === "text_delta") startBlock({ type: "text" }, index);
        if (!open || (index !== undefined && index !== open.index)) return fail();
        if (field === undefined || open.deltaType === undefined) return readOther(open, delta);
        if (delta.type !== open.deltaType) return fail();
        const text = textIn(delta[field]);
        if (text !== "") open.hasText = true;
        writer.delta(text);
      },
    ],
    ["content_block_stop", close],
    [
      "message_delta",
      (event) => {
        close();
        if (isObject(event.delta)) ending = event.delta;
        updateUsage(event.usage, event);
      },
    ],
    [
      "message_stop",
      () => {
        close();
        finish(ending, writer);
      },
    ],
  ]);

  return {
    push(frame) {
      if (writer.ended || !frame.data || frame.data === "[DONE]") return;
      const event = read(frame);
      if (!isObject(event)) return fail();
      const handler = handlers.get(event.type ?? frame.event);
      if (handler) return handler(event);
      const failure = errorIn(event);
      if (failure) breakOff(failure);
    },
    end() {
      breakOff(cutReply);
    },
  };
};

/** The text of a delta: usually the only thing that changes from one event to the next. */
function deltaText(event: unknown): [JsonObject, string] | undefined {
  if (!isObject(event) || !isObject(event.delta)) return undefined;
  const field = textFieldOf.get(event.delta.type);
  return field === undefined || typeof event.delta[field] !== "string" ? undefined : [event.delta, field];
}

/** A delta that is not text: a signature, a citation, or a piece of a foreign block. */
function readOther(open: OpenBlock, delta: JsonObject): void {
  const { end, block } = open;
  if (delta.type === "signature_delta") Object.assign(end, signed(delta.signature));
  else if (delta.type === "citations_delta") {
    const citations = end.extras?.anthropic?.citations;
    end.extras = { anthropic: { citations: [...(Array.isArray(citations) ? citations : []), delta.citation] } };
  } else if (delta.type === "input_json_delta") open.text += textIn(delta.partial_json);
  else if (block.kind === "foreign" && isObject(block.value)) {
    const grown = { ...block.value };
    for (const [key, piece] of Object.entries(delta)) {
      const before = grown[key];
      if (key !== "type") grown[key] = typeof before === "string" && typeof piece === "string" ? before + piece : piece;
    }
    open.block = { ...block, value: grown };
  }
}

function withInput(block: Block, input: string): Block {
  if (block.kind !== "foreign" || !isObject(block.value) || input === "") return block;
  return { ...block, value: { ...block.value, input: inputObject({ input }) } };
}

// ── Encode ──

/** Writes a full reply. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const content: JsonObject[] = [];
  const usage: Partial<Usage> = {};
  let id = "";
  let block: Block | undefined;
  let text = "";
  let ending: JsonObject = { stop_reason: null, stop_sequence: null };
  for (const event of events) {
    if (event.type === "start") id = event.id;
    else if (event.type === "block-start") [block, text] = [event.block, ""];
    else if (event.type === "block-delta") text += event.text;
    else if (event.type === "usage") Object.assign(usage, event.usage);
    else if (event.type === "block-end" && block) content.push(...writeBlock(block, text, event));
    else if (event.type === "finish") ending = writeEnding(event, content.some(isToolUse));
  }
  const message = { id: messageId(id), type: "message", role: "assistant", model: conversation.model, content };
  return { ...message, ...ending, usage: encodeUsage(usage) };
}

/**
 * The block, or nothing if this dialect does not have it. Empty text blocks are omitted, because they are refused
 * later.
 */
function writeBlock(block: Block, text: string, end: { signature?: Signature } & WithExtras): JsonObject[] {
  const { signature } = end;
  switch (block.kind) {
    case "text": {
      const textBlock = restoreExtras(
        restoreExtras({ type: "text", text }, block.extras?.anthropic),
        end.extras?.anthropic,
      );
      return text === "" && !end.extras?.anthropic ? [] : [textBlock];
    }
    case "thinking":
      if (text === "" && !signature) return [];
      return [signature && isRedacted(block, text, signature) ? redacted(signature) : thinking(block, text, signature)];
    case "tool-call":
      return [{ ...toolUse(block), input: inputObject({ input: text, freeform: block.freeform }) }];
    case "foreign":
      return block.dialect === "messages" && isObject(block.value) ? [block.value] : [];
  }
}

/** Thinking without text is written as `redacted_thinking`, except Anthropic's own, which may be just hidden. */
function isRedacted(block: Block & { kind: "thinking" }, text: string, signature: Signature): boolean {
  return block.extras?.anthropic?.type === "redacted_thinking" || (text === "" && signature.dialect !== "messages");
}

const redacted = (signature: Signature): JsonObject => ({
  type: "redacted_thinking",
  data: packSignature(signature, "messages"),
});

const thinking = (block: Block & WithExtras, text: string, signature: Signature | undefined): JsonObject =>
  restoreExtras(
    { type: "thinking", thinking: text, signature: signature ? packSignature(signature, "messages") : "" },
    block.extras?.anthropic,
  );

const toolUse = (block: Block & { kind: "tool-call" }): JsonObject =>
  restoreExtras(
    { type: "tool_use", id: block.id || `toolu_${randomId()}`, name: block.name, input: {} },
    block.extras?.anthropic,
  );

const isToolUse = (block: JsonObject): boolean => block.type === "tool_use";

function writeEnding(event: ReplyEvent & { type: "finish" }, called: boolean): JsonObject {
  const { reason, raw, stopSequence, explanation } = event;
  // Clients run tools only if the stop reason is `tool_use`.
  const stopped = reason === "stop" && called ? "tool-call" : reason;
  const word = raw !== undefined && stopReasons.get(raw) === stopped ? raw : stopReasonNames[stopped];
  const details = explanation && { stop_details: { type: "refusal", category: null, explanation } };
  return { stop_reason: word, stop_sequence: stopSequence ?? null, ...details };
}

const messageId = (id: string): string => (id.startsWith("msg_") ? id : `msg_${randomId()}`);

const randomId = (): string => crypto.randomUUID().replaceAll("-", "");

/** Writes a stream. */
export const encodeStream =
  (conversation: Conversation): ToClient<ReplyEvent> =>
  (next): ClientSink<ReplyEvent> => {
    const usage: Partial<Usage> = {};
    let block: Block | undefined;
    const blocks = blockWriter(next);
    let called = false;
    /** The stop of a call waits for the next event: before an error it would make an incomplete call look complete. */
    let heldStop = false;
    let ended = false;

    const write = (event: JsonObject & { type: string }) => next.push(jsonFrame(event, event.type));

    const stop = () => {
      blocks.stop();
      heldStop = false;
    };

    const startBlock = (started: Block) => {
      block = started;
      if (started.kind !== "tool-call") return;
      called = true;
      blocks.start(toolUse(started), started.kind);
      if (started.freeform) blocks.text('{"input":"');
    };

    const delta = (text: string) => {
      if (!block || block.kind === "foreign") return;
      if (!blocks.isOpen) blocks.start(emptyBlock(block), block.kind);
      blocks.text(block.kind === "tool-call" && block.freeform ? JSON.stringify(text).slice(1, -1) : text);
    };

    const endBlock = (end: { signature?: Signature } & WithExtras) => {
      if (!block) return;
      if (block.kind === "tool-call") {
        if (block.freeform || !blocks.hasText) blocks.text(block.freeform ? '"}' : "{}");
        heldStop = true;
        return;
      }
      const [whole] = blocks.isOpen ? [] : writeBlock(block, "", end);
      if (whole) blocks.start(startOf(whole), block.kind);
      if (!blocks.isOpen) return;
      if (whole && isObject(whole.input)) blocks.text(JSON.stringify(whole.input));
      const { citations } = end.extras?.anthropic ?? {};
      if (Array.isArray(citations))
        for (const citation of citations) blocks.delta({ type: "citations_delta", citation });
      if (end.signature && whole?.type !== "redacted_thinking")
        blocks.delta({ type: "signature_delta", signature: packSignature(end.signature, "messages") });
      stop();
    };

    const fail = (error: ReplyError) => {
      if (ended) return;
      if (blocks.isOpen && block?.kind !== "tool-call") stop();
      ended = true;
      next.push(errorFrame(error));
    };

    return {
      push(event) {
        if (ended) return;
        if (heldStop && event.type !== "error") stop();
        switch (event.type) {
          case "start": {
            const message = {
              id: messageId(event.id),
              type: "message",
              role: "assistant",
              model: conversation.model,
              content: [],
            };
            // Unknown numbers are 0 here; `message_delta` has the final ones.
            const unknown = { stop_reason: null, stop_sequence: null, usage: encodeUsage({}) };
            return write({ type: "message_start", message: { ...message, ...unknown } });
          }
          case "block-start":
            return startBlock(event.block);
          case "block-delta":
            return delta(event.text);
          case "block-end":
            return endBlock(event);
          case "usage":
            Object.assign(usage, event.usage);
            return;
          case "finish":
            write({ type: "message_delta", delta: writeEnding(event, called), usage: encodeUsage(usage) });
            write({ type: "message_stop" });
            ended = true;
            return;
          case "error":
            return fail(event);
        }
      },
      end() {
        fail({ type: "error", ...cutReply });
      },
      keepAlive() {
        if (ended) return;
        if (heldStop) stop();
        next.push(pingFrame());
      },
      fail,
    };
  };

/** Writes the events of one block after the other. */
function blockWriter(next: Sink<SseFrame>) {
  let index = -1;
  /** The beginning of the block's deltas; undefined until its start is written, which waits for the first text. */
  let prefix: string | undefined;
  let hasText = false;

  const write = (event: JsonObject & { type: string }) => next.push(jsonFrame(event, event.type));

  return {
    start(content_block: JsonObject, kind: Block["kind"]) {
      const type = deltaTypes[kind] ?? "input_json_delta";
      write({ type: "content_block_start", index: ++index, content_block });
      prefix = `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${textFieldOf.get(type)}":`;
      hasText = false;
    },
    text(text: string) {
      hasText = true;
      next.push({ event: "content_block_delta", data: `${prefix}${JSON.stringify(text)}}}` });
    },
    /** A delta that is not text. */
    delta: (delta: JsonObject) => write({ type: "content_block_delta", index, delta }),
    stop() {
      write({ type: "content_block_stop", index });
      prefix = undefined;
    },
    get isOpen() {
      return prefix !== undefined;
    },
    /** Whether the block has text. */
    get hasText() {
      return hasText;
    },
  };
}

const emptyBlock = (block: Exclude<Block, { kind: "foreign" }>): JsonObject =>
  block.kind === "thinking"
    ? thinking(block, "", undefined)
    : restoreExtras({ type: "text", text: "" }, block.extras?.anthropic);

/** The start of a complete block: input, citations and signature follow as deltas. */
function startOf(whole: JsonObject): JsonObject {
  const started = { ...whole };
  delete started.citations;
  if (whole.type === "thinking") started.signature = "";
  if (isObject(whole.input)) started.input = {};
  return started;
}

export const pingFrame = (): SseFrame => jsonFrame({ type: "ping" }, "ping");
