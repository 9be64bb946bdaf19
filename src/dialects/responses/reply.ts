/** Replies of the responses dialect: a list of items, each streamed as several events. */
import { entryOf, isObject } from "../../json";
import { commentFrame, jsonFrame, jsonOf, type SseFrame } from "../../net/sse";
import { collectInto, type Sink, type Stage } from "../../net/stream";
import type { ToClient } from "../codec";
import { cutReply, type ReplyWriter, replyWriter } from "../hub/block-lifecycle";
import type { Conversation, JsonObject, Signature, WithExtras } from "../hub/conversation";
import { countIn, omit, omitUndefined, textIn } from "../hub/json";
import type { Block, ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { extrasOf } from "../openai";
import { errorIn, gaveUp, invalidEvent, invalidReply } from "./errors";
import { outputIndexes } from "./output-indexes";
import { thinkingText } from "./parts";
import { deltaIn, eventType } from "./raw-fields";
import { echoOf } from "./request";
import { flatName, wireName } from "./tools";
import { decodeUsage, encodeUsage } from "./usage";

// ── Wire facts ──

const knownOfCall = new Set(["type", "id", "call_id", "status", "name", "arguments", "input"]);

// ── Tables ──

/** Why a response is incomplete; an unknown reason counts as `length`. */
const incompleteReasons: Record<string, StopReason> = { max_output_tokens: "length", content_filter: "refusal" };

// ── Decode ──

/** Reads a full reply. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const reader = itemReader(collectInto(events));
  if (!isObject(body) || (!isObject(body.error) && !Array.isArray(body.output))) reader.fail(invalidReply);
  else reader.terminate(isObject(body.error) ? "failed" : (body.status ?? "completed"), body, body);
  return events;
}

/** Reads a stream. */
export function decodeStream(): Stage<SseFrame, ReplyEvent> {
  return (next) => {
    const reader = itemReader(next);
    return {
      push(frame) {
        if (frame.data === undefined || frame.data === "[DONE]" || reader.ended) return;
        const type = eventType(frame);
        const event = (type.endsWith(".delta") && deltaIn(frame.data)) || jsonOf(frame);
        if (isObject(event)) reader.see(type, event);
        else reader.fail(invalidEvent);
      },
      end() {
        reader.fail(cutReply);
        next.end();
      },
    };
  };
}

/** What was already emitted of the item that is being streamed. */
interface Progress {
  index: number;
  id: string;
  /** The message's extras, for its first block. */
  extras: WithExtras;
  /**
   * The content part of a message, or the part of a reasoning item, that is being streamed; earlier parts are
   * complete.
   */
  part: string | number | undefined;
  /** Whether text of that part was emitted. */
  spoke: boolean;
}

/**
 * Reads items into blocks. Copilot gives each event of an item a new id, so items are matched by `output_index`. The
 * first added item is streamed; items added meanwhile are emitted when they are done and the first one has ended.
 */
function itemReader(next: Sink<ReplyEvent>) {
  const writer = replyWriter(next);
  const whole = new Map<number, JsonObject>();
  /** The items of `output_item.added` and `output_item.done` events. */
  const shown = new Map<number, JsonObject>();
  const emitted = new Set<number>();
  let inFlight: Progress | undefined;
  let called = false;
  let refused = false;

  const see = (type: string, event: JsonObject) => {
    const index = countIn(event.output_index) ?? -1;
    const progress = inFlight?.index === index ? inFlight : undefined;
    if (isObject(event.item)) shown.set(index, event.item);
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return progress && textDelta(progress, event, type === "response.refusal.delta");
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        if (!progress || writer.openKey !== `${index}`) return;
        progress.spoke = true;
        return writer.delta(textIn(event.delta));
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return progress && thinkingDelta(writer, progress, event);
      case "response.content_part.done":
        return progress && isObject(event.part) && endPart(progress, event.part);
      case "response.created":
      case "response.in_progress":
        return isObject(event.response) && start(event.response);
      case "response.output_item.added":
        return isObject(event.item) && !inFlight && !emitted.has(index) && addItem(event.item, index);
      case "response.output_item.done":
        return isObject(event.item) && !emitted.has(index) && endItem(event.item, index);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        const response = isObject(event.response) ? event.response : {};
        return terminate(type.slice("response.".length), response, event);
      }
      default: {
        // Errors of Copilot may come without a type.
        const error = type.startsWith("response.") ? undefined : errorIn(event);
        if (error) fail(error);
      }
    }
  };

  const start = (response: JsonObject) => writer.start(textIn(response.id), textIn(response.model));

  const addItem = (item: JsonObject, index: number) => {
    inFlight = { ...fresh(index), id: textIn(item.id), extras: messageExtras(item) };
    if (!isCall(item)) return;
    called = true;
    writer.open(`${index}`, callBlock(item));
  };

  const textDelta = (progress: Progress, event: JsonObject, refusal: boolean) => {
    const at = countIn(event.content_index) ?? 0;
    const text = textIn(event.delta);
    if (typeof progress.part === "number" && at < progress.part) return fail(invalidEvent);
    if (progress.part !== at) progress.spoke = false;
    progress.part = at;
    if (text === "") return;
    writer.open(partKey(progress, at), textBlock(refusal, progress.extras));
    writer.delta(text);
    progress.extras = {};
    progress.spoke = true;
    refused ||= refusal;
  };

  const endPart = (progress: Progress, part: JsonObject) => {
    if (!progress.spoke || typeof progress.part !== "number") return;
    writer.close(annotationExtras(part));
    progress.part++;
    progress.spoke = false;
  };

  const endItem = (item: JsonObject, index: number) => {
    if (inFlight && inFlight.index !== index) return void whole.set(index, item);
    emit(item, inFlight ?? fresh(index));
    inFlight = undefined;
    emitWaiting();
  };

  /** Emits what was not yet streamed of the item. */
  const emit = (item: JsonObject, progress: Progress) => {
    emitted.add(progress.index);
    called ||= isCall(item);
    if (isCall(item)) emitCall(writer, item, progress);
    else if (item.type === "reasoning") emitReasoning(writer, item, progress);
    else if (item.type === "message") refused = emitMessage(writer, item, progress) || refused;
    else {
      writer.open(`${progress.index}`, { kind: "foreign", dialect: "responses", value: item });
      writer.close();
    }
  };

  const emitWaiting = () => {
    for (const [index, item] of whole) if (!emitted.has(index)) emit(item, fresh(index));
    whole.clear();
  };

  /** Ends the reply; items that were not streamed are read from its output. */
  const terminate = (status: unknown, response: JsonObject, event: JsonObject) => {
    if (textIn(response.id) !== "") start(response);
    if (status !== "completed" && status !== "incomplete") {
      emitUsage(response, event);
      return fail(errorIn(response) ?? gaveUp);
    }
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    const indexes = outputIndexes(output, shown);
    const emitAt = (at: number, progress?: Progress) => {
      // A negative index stands for an item that was not streamed.
      const index = indexes[at] ?? -1 - at;
      const item = output[at];
      if (isObject(item) && !emitted.has(index)) emit(item, progress ?? fresh(index));
    };
    // The item in flight comes first, so that no block is opened twice.
    if (inFlight) emitAt(indexes.indexOf(inFlight.index), inFlight);
    for (const at of output.keys()) emitAt(at);
    emitWaiting();
    emitUsage(response, event);
    const reason = isObject(response.incomplete_details) ? textIn(response.incomplete_details.reason) : "";
    if (status === "incomplete") writer.finish(entryOf(incompleteReasons, reason) ?? "length", reason || "incomplete");
    else writer.finish(called ? "tool-call" : refused ? "refusal" : "stop", "completed");
  };

  const emitUsage = (response: JsonObject, event: JsonObject) => {
    writer.close();
    const usage = decodeUsage(response, event);
    if (Object.keys(usage).length > 0) writer.usage(usage);
  };

  const fail = ({ code, message }: Pick<ReplyError, "code" | "message">) => writer.error(code, message);

  return {
    see,
    terminate,
    fail,
    get ended() {
      return writer.ended;
    },
  };
}

const fresh = (index: number): Progress => ({ index, id: "", extras: {}, part: undefined, spoke: false });

const isCall = ({ type }: JsonObject): boolean => type === "function_call" || type === "custom_tool_call";

/** Returns whether the message is a refusal. */
function emitMessage(writer: ReplyWriter, item: JsonObject, progress: Progress): boolean {
  const current = typeof progress.part === "number" ? progress.part : 0;
  let extras = progress.id === "" ? messageExtras(item) : progress.extras;
  let refused = false;
  const parts: unknown[] = Array.isArray(item.content) ? item.content : [];
  parts.forEach((part, at) => {
    if (!isObject(part) || at < current) return;
    const refusal = part.type === "refusal";
    const text = textIn(refusal ? part.refusal : part.text);
    if (text === "") return;
    writer.open(partKey(progress, at), textBlock(refusal, extras));
    if (at > current || !progress.spoke) writer.delta(text);
    writer.close(annotationExtras(part));
    extras = {};
    refused ||= refusal;
  });
  return refused;
}

const partKey = (progress: Progress, at: number) => `${progress.index}.${at}`;

const textBlock = (refusal: boolean, extras: WithExtras): Block => ({
  kind: "text",
  ...(refusal ? { refusal } : {}),
  ...extras,
});

/** `phase` (commentary or final answer): newer models do worse if it is not sent back. */
const messageExtras = ({ phase }: JsonObject): WithExtras => (phase == null ? {} : extrasOf({ phase }));

const annotationExtras = ({ annotations }: JsonObject): WithExtras =>
  Array.isArray(annotations) && annotations.length > 0 ? extrasOf({ annotations }) : {};

/** The parts of thinking are separated by a blank line. */
function thinkingDelta(writer: ReplyWriter, progress: Progress, event: JsonObject) {
  const delta = textIn(event.delta);
  if (delta === "") return;
  const part = event.summary_index === undefined ? `content ${event.content_index}` : `summary ${event.summary_index}`;
  writer.open(`${progress.index}`, thinkingBlock(progress.id));
  if (progress.spoke && progress.part !== part) writer.delta("\n\n");
  progress.part = part;
  progress.spoke = true;
  writer.delta(delta);
}

function emitReasoning(writer: ReplyWriter, item: JsonObject, progress: Progress) {
  const id = progress.id || textIn(item.id);
  const text = progress.spoke ? "" : thinkingText(item);
  const value = textIn(item.encrypted_content);
  if (text === "" && value === "" && !progress.spoke) return;
  writer.open(`${progress.index}`, thinkingBlock(id));
  writer.delta(text);
  const signature: Signature = id === "" ? { dialect: "responses", value } : { dialect: "responses", value, id };
  writer.close(value === "" ? {} : { signature });
}

function emitCall(writer: ReplyWriter, item: JsonObject, progress: Progress) {
  writer.open(`${progress.index}`, callBlock(item));
  if (!progress.spoke) writer.delta(textIn(item.type === "function_call" ? item.arguments : item.input));
  writer.close();
}

/** The id is needed with the encrypted content that comes at the end. */
const thinkingBlock = (id: string): Block => ({ kind: "thinking", ...extrasOf(id === "" ? undefined : { id }) });

function callBlock(item: JsonObject): Block {
  return {
    kind: "tool-call",
    id: textIn(item.call_id) || ownId("call"),
    name: flatName(textIn(item.name), item.namespace),
    ...(item.type === "custom_tool_call" ? { freeform: true } : {}),
    ...extrasOf(item.namespace == null ? omit(item, knownOfCall) : { ...omit(item, knownOfCall), name: item.name }),
  };
}

// ── Encode ──

/** Writes a full reply: the response of the stream's last event. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  let response: JsonObject = {};
  const writer = responseWriter(conversation, {
    send(_type, members) {
      if (isObject(members.response)) response = members.response;
    },
    deltas: () => () => {},
  });
  for (const event of events) writer.write(event);
  return response;
}

/** Writes a stream. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => {
    let sequence = 0;
    const writer = responseWriter(conversation, {
      send: (type, members) => next.push(jsonFrame({ type, sequence_number: sequence++, ...members }, type)),
      // Most events are deltas: what those of one text have in common is serialized once.
      deltas(type, members) {
        const head = `{"type":"${type}","sequence_number":`;
        const tail = `,${JSON.stringify(members).slice(1)}`;
        return (delta) => {
          next.push({ event: type, data: `${head}${sequence++},"delta":${JSON.stringify(delta)}${tail}` });
        };
      },
    });
    return {
      push: writer.write,
      end() {
        writer.write({ type: "error", ...cutReply });
        next.end();
      },
      keepAlive() {
        if (!writer.keepAlive()) next.push(commentFrame("waiting"));
      },
      fail: writer.write,
    };
  };
}

/** Receives the events that are written. */
interface Wire {
  send(type: string, members: JsonObject): void;
  /** A writer for the deltas of one text, which differ only in the text. */
  deltas(type: string, members: JsonObject): (delta: string) => void;
}

/** The open item. It ends when the next one begins; until then a message can get more content. */
interface OpenItem {
  index: number;
  id: string;
  /** The item as `output_item.done` will hold it. */
  item: JsonObject;
  delta(text: string): void;
  endBlock(end: { signature?: Signature } & WithExtras): void;
}

/** Writes the wire's events in the complete order that the strictest client needs. */
function responseWriter(conversation: Conversation, wire: Wire) {
  const output: JsonObject[] = [];
  const usage: Partial<Usage> = {};
  const echo = echoOf(conversation);
  const created_at = Math.floor(Date.now() / 1000);
  let id = "";
  let open: OpenItem | undefined;
  let refused = false;
  let ended = false;

  const response = (status: string, more: JsonObject = {}): JsonObject => ({
    id,
    object: "response",
    created_at,
    status,
    error: null,
    incomplete_details: null,
    ...echo,
    output: status === "in_progress" ? [] : output,
    usage: status === "in_progress" ? null : encodeUsage(usage, output.some(isReasoning)),
    ...more,
  });
  const start = (from: string) => {
    if (id !== "") return;
    id = /^resp_[\w-]{1,59}$/.test(from) ? from : ownId("resp");
    wire.send("response.created", { response: response("in_progress") });
    wire.send("response.in_progress", { response: response("in_progress") });
  };
  const add = (
    prefix: string,
    item: JsonObject,
    ownedId?: unknown,
  ): { index: number; id: string; item: JsonObject } => {
    const shown = { id: textIn(ownedId) || ownId(prefix), ...item };
    wire.send("response.output_item.added", { output_index: output.length, item: shown });
    return { index: output.length, id: shown.id, item: { ...shown } };
  };
  const endItem = (status: "completed" | "incomplete") => {
    if (!open) return;
    const { index, item } = open;
    open = undefined;
    if (item.status === "in_progress") item.status = status;
    output.push(item);
    wire.send("response.output_item.done", { output_index: index, item });
  };
  const openBlock = (block: Block): OpenItem | undefined => {
    const extras = block.kind === "foreign" ? {} : (block.extras?.openai ?? {});
    if (block.kind === "text") {
      refused ||= block.refusal === true;
      const { phase } = extras;
      const continued = open?.item.type === "message" && phase === undefined ? open : undefined;
      if (!continued) endItem("completed");
      const item = omitUndefined({ type: "message", status: "in_progress", role: "assistant", content: [], phase });
      return textPart(continued ?? add("msg", item), block.refusal === true, wire);
    }
    endItem("completed");
    if (block.kind === "thinking") return reasoningItem(add("rs", { type: "reasoning", summary: [] }, extras.id), wire);
    if (block.kind === "tool-call") {
      const { freeform } = block;
      const type = freeform ? "custom_tool_call" : "function_call";
      const call = { ...extras, type, status: "in_progress", call_id: block.id, ...wireName(conversation, block) };
      return callItem(add(freeform ? "ctc" : "fc", { ...call, [freeform ? "input" : "arguments"]: "" }), wire);
    }
    if (block.dialect !== "responses" || !isObject(block.value)) return undefined;
    return { ...add(textIn(block.value.type), block.value, block.value.id), delta() {}, endBlock() {} };
  };

  return {
    write(event: ReplyEvent) {
      if (ended) return;
      switch (event.type) {
        case "start":
          return start(event.id);
        case "block-start":
          open = openBlock(event.block);
          return;
        case "block-delta":
          return open?.delta(event.text);
        case "block-end":
          return open?.endBlock(event);
        case "usage":
          return void Object.assign(usage, event.usage);
        case "finish": {
          start("");
          // A refusal with text finishes as completed; without text the status must say it.
          const filtered = event.reason === "refusal" && !refused;
          const reason = event.reason === "length" ? "max_output_tokens" : filtered ? "content_filter" : undefined;
          const status = reason === undefined ? "completed" : "incomplete";
          if (filtered && event.explanation) {
            open = openBlock({ kind: "text", refusal: true });
            open?.delta(event.explanation);
            open?.endBlock({});
          }
          endItem(status);
          ended = true;
          const details = reason === undefined ? {} : { incomplete_details: { reason } };
          return wire.send(`response.${status}`, { response: response(status, details) });
        }
        case "error": {
          ended = true;
          const error = { code: event.code || "server_error", message: event.message };
          if (id === "") return wire.send("error", { ...error, param: null });
          return wire.send("response.failed", { response: response("failed", { error }) });
        }
      }
    },
    /**
     * Codex only counts events as activity, and the OpenAI SDK throws on `ping`; repeating `in_progress` suits both.
     * Returns false before the response has started.
     */
    keepAlive(): boolean {
      if (id === "") return false;
      if (!ended) wire.send("response.in_progress", { response: response("in_progress") });
      return true;
    },
  };
}

type Shown = Pick<OpenItem, "index" | "id" | "item">;

/** Writes one content part of a message. */
function textPart({ index, id, item }: Shown, refusal: boolean, wire: Wire): OpenItem {
  const content: unknown[] = Array.isArray(item.content) ? item.content : [];
  const at = { item_id: id, output_index: index, content_index: content.length };
  const [events, more] = refusal ? ["response.refusal", {}] : ["response.output_text", { logprobs: [] }];
  const part = (text: string, annotations: unknown[]): JsonObject =>
    refusal ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations, ...more };
  const sendDelta = wire.deltas(`${events}.delta`, { ...at, ...more });
  let text = "";
  wire.send("response.content_part.added", { ...at, part: part("", []) });
  return {
    index,
    id,
    item,
    delta(piece) {
      text += piece;
      sendDelta(piece);
    },
    endBlock(end) {
      const listed = end.extras?.openai?.annotations;
      const annotations: unknown[] = Array.isArray(listed) ? listed : [];
      for (const [annotation_index, annotation] of annotations.entries())
        wire.send(`${events}.annotation.added`, { ...at, annotation_index, annotation });
      wire.send(`${events}.done`, { ...at, ...(refusal ? { refusal: text } : { text }), ...more });
      const done = part(text, annotations);
      item.content = [...content, done];
      wire.send("response.content_part.done", { ...at, part: done });
    },
  };
}

function reasoningItem({ index, id, item }: Shown, wire: Wire): OpenItem {
  const at = { item_id: id, output_index: index, summary_index: 0 };
  const sendDelta = wire.deltas("response.reasoning_summary_text.delta", at);
  let text = "";
  return {
    index,
    id,
    item,
    delta(piece) {
      if (text === "")
        wire.send("response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text } });
      text += piece;
      sendDelta(piece);
    },
    endBlock({ signature }) {
      item.encrypted_content = signature ? packSignature(signature, "responses") : null;
      if (text === "") return;
      const part = { type: "summary_text", text };
      item.summary = [part];
      wire.send("response.reasoning_summary_text.done", { ...at, text });
      wire.send("response.reasoning_summary_part.done", { ...at, part });
    },
  };
}

function callItem({ index, id, item }: Shown, wire: Wire): OpenItem {
  const at = { item_id: id, output_index: index };
  const freeform = item.type === "custom_tool_call";
  const events = freeform ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const sendDelta = wire.deltas(`${events}.delta`, at);
  let text = "";
  const delta = (piece: string) => {
    text += piece;
    sendDelta(piece);
  };
  return {
    index,
    id,
    item,
    delta,
    endBlock() {
      if (text === "" && !freeform) delta("{}");
      const done = freeform ? { input: text } : { arguments: text };
      Object.assign(item, done);
      wire.send(`${events}.done`, freeform ? { ...at, ...done } : { ...at, name: item.name, ...done });
    },
  };
}

const isReasoning = ({ type }: JsonObject): boolean => type === "reasoning";

const ownId = (prefix: string) => `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;
