/** Chat completion replies, full or as a stream. */

import { randomUUID } from "node:crypto";
import { isObject, numberIn } from "../../json";
import { commentFrame, jsonFrame, type SseFrame } from "../../net/sse";
import { collectInto, type Sink, type Stage } from "../../net/stream";
import type { ReplyContext, ToClient } from "../codec";
import { cutReply, type ReplyWriter, replyWriter } from "../hub/block-lifecycle";
import type { Conversation, JsonObject, Signature, WithExtras } from "../hub/conversation";
import { omitUndefined } from "../hub/json";
import type { Block, ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { deltaReader, type TextSlot } from "../hub/text-delta";
import { callQueue } from "./call-queue";
import { annotationsOf } from "./citations";
import { errorFrame, errorIn, gaveUp, invalidEvent, invalidReply } from "./errors";
import { thinkingFields, thoughtIn } from "./thinking";
import { decodeUsage, encodeUsage } from "./usage";

// ── Wire facts ──

export const textFields: readonly string[] = ["content", "refusal", ...thinkingFields];

// ── Tables ──

const stopReasons: Record<string, StopReason> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-call",
  function_call: "tool-call",
  content_filter: "refusal",
};

const finishReasons: Record<StopReason, string> = {
  stop: "stop",
  "stop-sequence": "stop",
  length: "length",
  "tool-call": "tool_calls",
  refusal: "content_filter",
  pause: "stop",
};

// ── Decode ──

/** Reads chunks into events. `finish` waits for the end, because usage may follow the finish reason. */
export function decodeStream(context?: Pick<ReplyContext, "replies">): Stage<SseFrame, ReplyEvent> {
  return (next) => {
    const reply = replyReader(next, context?.replies);
    const readJson = deltaReader(deltaText);
    return {
      push(frame) {
        if (!frame.data || reply.ended) return;
        if (frame.data === "[DONE]") return reply.done();
        const chunk = readJson(frame);
        if (!isObject(chunk)) return reply.fail(invalidEvent);
        reply.chunk(chunk, "delta");
      },
      end() {
        reply.cut();
        next.end();
      },
    };
  };
}

/** A full reply is read like a stream of one chunk, with `message` in the place of `delta`. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const reply = replyReader(collectInto(events));
  if (!isObject(body) || (!body.error && (!Array.isArray(body.choices) || body.choices.length === 0)))
    reply.fail(invalidReply);
  else {
    reply.chunk(body, "message");
    reply.done();
  }
  return events;
}

/**
 * Reads chunks into a reply. All choices are one message, because Claude's text and calls come as separate choices.
 * @param replies How many replies the client asked for; only the first one is read.
 */
function replyReader(next: Sink<ReplyEvent>, replies = 1) {
  const writer = replyWriter(next);
  const message = messageWriter(writer, () => fail(invalidEvent));
  const finished = new Set<number | undefined>();
  let id = "";
  let model = "";
  let finishReason: string | undefined;
  let usage: Partial<Usage> | undefined;

  const chunk = (json: JsonObject, key: "delta" | "message") => {
    const failure = errorIn(json);
    if (failure) return fail(failure);
    if (typeof json.id === "string" && json.id !== "") id = json.id;
    if (typeof json.model === "string" && json.model !== "") model = json.model;
    if (isObject(json.usage) || isObject(json.copilot_usage)) usage = { ...usage, ...decodeUsage(json) };
    if (!Array.isArray(json.choices)) return;
    for (const choice of json.choices) {
      if (!isObject(choice)) continue;
      writer.start(id, model);
      const index = numberIn(choice.index);
      if (typeof choice.finish_reason === "string") finished.add(index);
      if (choice.finish_reason === "error") return fail(gaveUp);
      if (replies > 1 && index !== undefined && index > 0) continue;
      const delta = choice[key];
      if (isObject(delta)) message.write(delta, key === "message", id);
      const reason = choice.finish_reason;
      if (typeof reason === "string" && finishReason !== "tool_calls") finishReason = reason;
      if (writer.ended) return;
    }
  };

  const writeUsage = () => {
    writer.close();
    if (usage && Object.keys(usage).length > 0) writer.usage(usage);
    usage = undefined;
  };

  const fail = ({ code, message }: Pick<ReplyError, "code" | "message">) => {
    if (writer.ended) return;
    writeUsage();
    writer.error(code, message);
  };

  const finish = (raw?: string) => {
    message.end();
    if (writer.ended) return;
    writeUsage();
    writer.finish(reasonOf(raw ?? "stop", message.hasCalls, message.isRefused), raw);
  };

  return {
    chunk,
    fail,
    /** The upstream sent `[DONE]`. */
    done() {
      // Claude may omit the finish reason. The reply counts as complete if the input of its calls is complete.
      if (finishReason !== undefined || message.isComplete) finish(finishReason);
      else fail(cutReply);
    },
    /** The upstream closed the connection: a normal end if each reply has a finish reason. */
    cut() {
      if (finishReason === undefined || (replies > 1 && finished.size < replies)) fail(cutReply);
      else this.done();
    },
    get ended() {
      return writer.ended;
    },
  };
}

/**
 * Writes the deltas of a message as blocks in sequence: text that arrives within a call waits until the call ends, and
 * a signature goes to the thinking it belongs to.
 */
function messageWriter(writer: ReplyWriter, failCall: () => void) {
  let opaque: string | undefined;
  /** Text that arrived within a call's input: it is written after the call. */
  let late: { key: string; block: Block; text: string }[] = [];
  let hasContent = false;
  let isRefused = false;

  const writeText = (key: string, block: Block, text: string) => {
    if (!calls.mayGoOn) {
      open(key, block);
      writer.delta(text);
      return;
    }
    const last = late.at(-1);
    if (last?.key === key) last.text += text;
    else late.push({ key, block, text });
  };

  const open = (key: string, block: Block) => {
    if (writer.openKey === key) return;
    closeAll();
    if (block.kind !== "thinking") writeSignature();
    hasContent = true;
    writer.open(key, block);
  };

  /** Closes the open text or thinking block; thinking takes its signature, if it has arrived. */
  const close = () => {
    if (writer.openKey === "thinking" && opaque !== undefined) {
      writer.close({ signature: { dialect: "chat", value: opaque } });
      opaque = undefined;
    } else writer.close();
  };

  /** Closes the open block and all calls, then writes the text that waited for them. */
  const closeAll = () => {
    close();
    calls.end();
    const waited = late;
    late = [];
    for (const { key, block, text } of waited) {
      writer.open(key, block);
      writer.delta(text);
      close();
    }
  };

  /** Writes a remaining signature as an empty thinking block: it arrived late, or the thinking is not shown. */
  const writeSignature = () => {
    if (opaque === undefined) return;
    writer.open("thinking", { kind: "thinking" });
    close();
  };

  const calls = callQueue({
    writer,
    closeText() {
      close();
      writeSignature();
      hasContent = true;
    },
    fail: failCall,
  });

  return {
    /** @param isFull Whether it is the message of a full reply, not a delta. */
    write(delta: JsonObject, isFull: boolean, replyId: string) {
      const thought = thoughtIn(delta);
      if (thought !== "") writeText("thinking", { kind: "thinking" }, thought);
      if (typeof delta.reasoning_opaque === "string" && delta.reasoning_opaque !== "") {
        opaque = delta.reasoning_opaque;
        if (writer.openKey === "thinking") closeAll();
      }
      if (typeof delta.content === "string" && delta.content !== "") writeText("text", { kind: "text" }, delta.content);
      if (typeof delta.refusal === "string" && delta.refusal !== "") {
        isRefused = true;
        writeText("refusal", { kind: "text", refusal: true }, delta.refusal);
      }
      if (Array.isArray(delta.tool_calls)) for (const piece of delta.tool_calls) calls.piece(piece, isFull, replyId);
      else if (isObject(delta.function_call)) calls.piece({ index: 0, function: delta.function_call }, false, replyId);
    },
    end() {
      closeAll();
      writeSignature();
    },
    get hasCalls() {
      return calls.count > 0;
    },
    get isRefused() {
      return isRefused;
    },
    /** Whether it has content, and no call with incomplete input. */
    get isComplete() {
      return (hasContent || calls.count > 0) && calls.isWhole;
    },
  };
}

/** Some models finish with `stop` although they call a tool or refuse. */
function reasonOf(raw: string, called: boolean, refused: boolean): StopReason {
  const reason = Object.hasOwn(stopReasons, raw) ? stopReasons[raw] : undefined;
  if (reason && reason !== "stop") return reason;
  return called ? "tool-call" : refused ? "refusal" : "stop";
}

/** The text of a chunk: usually the only thing that changes from one chunk to the next. */
export function deltaText(chunk: unknown): TextSlot | undefined {
  if (!isObject(chunk) || !Array.isArray(chunk.choices) || chunk.choices.length !== 1) return undefined;
  const delta = chunk.choices[0]?.delta;
  if (!isObject(delta)) return undefined;
  const calls = delta.tool_calls;
  if (!Array.isArray(calls) || calls.length === 0) return slotIn(delta, textFields);
  return isObject(calls[0]?.function) ? slotIn(calls[0].function, ["arguments"]) : undefined;
}

function slotIn(holder: JsonObject, keys: readonly string[]): TextSlot | undefined {
  const key = keys.find((name) => typeof holder[name] === "string" && holder[name] !== "");
  return key === undefined ? undefined : [holder, key];
}

// ── Encode ──

/** Writes the chunks of one reply. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => {
    const created = now();
    let id = "";
    let around = { before: "", after: "" };
    let usage: Partial<Usage> = {};
    let block: Block | undefined;
    let spoke = false;
    let refused = false;
    let calls = -1;
    /** Length of the content: so far, and before the open block. */
    let length = 0;
    let before = 0;
    let ended = false;

    const write = (delta: JsonObject) => next.push({ data: around.before + JSON.stringify(delta) + around.after });
    const chunk = (members: JsonObject) =>
      next.push(jsonFrame({ id, object: "chat.completion.chunk", created, model: conversation.model, ...members }));

    const start = (replyId: string) => {
      id = replyId || `chatcmpl-${randomUUID()}`;
      const head = JSON.stringify({ id, object: "chat.completion.chunk", created, model: conversation.model }).slice(
        0,
        -1,
      );
      around = {
        before: `${head},"choices":[{"index":0,"delta":`,
        after: ',"logprobs":null,"finish_reason":null}]}',
      };
      write({ role: "assistant", content: "" });
    };

    const openBlock = (opened: Block) => {
      block = opened;
      spoke = false;
      if (opened.kind === "text" && opened.refusal) refused = true;
      if (opened.kind !== "tool-call") return;
      calls++;
      write({ tool_calls: [{ index: calls, ...callOf(opened, "") }] });
    };

    const say = (text: string) => {
      spoke = true;
      if (block?.kind === "text" && !block.refusal) length += text.length;
      if (block?.kind === "text") write(block.refusal ? { refusal: text } : { content: text });
      else if (block?.kind === "thinking") write({ reasoning_text: text });
      else if (block?.kind === "tool-call") write({ tool_calls: [{ index: calls, ...inputOf(block, text) }] });
    };

    const closeBlock = (end: { signature?: Signature } & WithExtras) => {
      const { signature } = end;
      const annotations = block?.kind === "text" ? annotationsOf(end, before) : [];
      if (annotations.length > 0) write({ annotations });
      before = length;
      if (block?.kind === "thinking" && signature) write({ reasoning_opaque: packSignature(signature, "chat") });
      if (block?.kind === "tool-call" && !spoke && !block.freeform) say("{}");
      block = undefined;
    };

    const finish = ({ reason, explanation }: Finish) => {
      ended = true;
      // The explanation is not the model's text; the finish reason still says that the reply was stopped.
      if (explanation && !refused) write({ refusal: explanation });
      chunk({
        choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: finishReasonOf(reason, refused) }],
      });
      const numbers = wantsUsage(conversation) && encodeUsage(usage);
      if (numbers) chunk({ choices: [], usage: numbers });
      next.push({ data: "[DONE]" });
    };

    const fail = (error: Pick<ReplyError, "code" | "message">) => {
      if (ended) return;
      ended = true;
      next.push(errorFrame(error));
    };

    return {
      push(event) {
        if (ended) return;
        if (event.type === "block-delta") say(event.text);
        else if (event.type === "block-start") openBlock(event.block);
        else if (event.type === "block-end") closeBlock(event);
        else if (event.type === "start") start(event.id);
        else if (event.type === "usage") usage = { ...usage, ...event.usage };
        else if (event.type === "finish") finish(event);
        else fail(event);
      },
      end() {
        fail(cutReply);
        next.end();
      },
      keepAlive() {
        if (!ended) next.push(commentFrame("keep-alive"));
      },
      fail,
    };
  };
}

/** Writes the events as one chat completion. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  const texts = { content: "", refusal: "", reasoning_text: "" };
  const calls: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  let id = "";
  let usage: Partial<Usage> = {};
  let block: Block | undefined;
  let text = "";
  let opaque: string | undefined;
  let finish_reason: string | null = null;
  let explanation: string | undefined;

  for (const event of events) {
    if (event.type === "start") id = event.id;
    else if (event.type === "usage") usage = { ...usage, ...event.usage };
    else if (event.type === "block-delta") text += event.text;
    else if (event.type === "finish") {
      finish_reason = finishReasonOf(event.reason, texts.refusal !== "");
      explanation = event.explanation;
    } else if (event.type === "block-start") {
      block = event.block;
      text = "";
    } else if (event.type === "block-end") {
      if (block?.kind === "text") annotations.push(...annotationsOf(event, texts.content.length));
      if (block?.kind === "text") texts[block.refusal ? "refusal" : "content"] += text;
      if (block?.kind === "thinking") texts.reasoning_text += text;
      if (block?.kind === "tool-call") calls.push(callOf(block, text === "" && !block.freeform ? "{}" : text));
      if (event.signature) opaque = packSignature(event.signature, "chat");
    }
  }
  const message = omitUndefined({
    role: "assistant",
    content: texts.content || (calls.length === 0 && texts.refusal === "" ? "" : null),
    refusal: texts.refusal || explanation || null,
    annotations: annotations.length > 0 ? annotations : undefined,
    reasoning_text: texts.reasoning_text || undefined,
    reasoning_opaque: opaque,
    tool_calls: calls.length > 0 ? calls : undefined,
  });
  return omitUndefined({
    id: id || `chatcmpl-${randomUUID()}`,
    object: "chat.completion",
    created: now(),
    model: conversation.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage: encodeUsage(usage),
  });
}

type Finish = Extract<ReplyEvent, { type: "finish" }>;

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

const now = () => Math.floor(Date.now() / 1000);
