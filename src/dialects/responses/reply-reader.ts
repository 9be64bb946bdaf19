/** Reads replies of the responses dialect, full or as a stream: their items become blocks. */
import { entryOf, isObject } from "../../lib/json";
import { gaveUp, type Lane } from "../hub/block-lifecycle";
import { longestId } from "../hub/call-pairs";
import type { JsonObject, Signature, WithExtras } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { countIn, textIn } from "../hub/json";
import type { Block, StopReason } from "../hub/reply";
import { EventReader } from "../hub/upstream-stream";
import { extrasOf } from "../openai";
import { sealOf } from "./compaction";
import { errorIn, invalidEvent, invalidReply } from "./errors";
import { ownId } from "./ids";
import { outputIndexes } from "./output-indexes";
import { thinkingText } from "./parts";
import { toolRunBy } from "./server-tools";
import { calledName } from "./tools";
import { decodeUsage } from "./usage";

/** Why a response is incomplete; an unknown reason counts as `length`. */
const incompleteReasons: Record<string, StopReason> = { max_output_tokens: "length", content_filter: "refusal" };

/** How much of a streamed item was emitted. */
interface Progress {
  lane: Lane;
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

/** Items are matched by `output_index`: not each event has an id. */
export class ItemReader extends EventReader {
  protected readonly invalid = invalidEvent;
  /** The items of `output_item.added` and `output_item.done` events. */
  private readonly shown = new Map<number, JsonObject>();
  private readonly emitted = new Set<number>();
  /** The items that have not ended, by their indexes. */
  private readonly open = new Map<number, Progress>();
  private called = false;
  private refused = false;

  protected readReply(body: unknown) {
    if (!isObject(body) || (!isObject(body.error) && !Array.isArray(body.output))) return this.failed(invalidReply);
    this.terminate(isObject(body.error) ? "failed" : (body.status ?? "completed"), body, body);
  }

  protected read(type: string, event: JsonObject) {
    const index = countIn(event.output_index) ?? -1;
    if (isObject(event.item)) this.shown.set(index, event.item);
    // Text may come without its item's beginning.
    const progress = isText(type) && this.open.size === 0 ? this.begun(index) : this.open.get(index);
    if (progress) this.readContent(progress, type, event, index);
    else this.readLifecycle(type, event, index);
  }

  /** The item that is streamed with this index; undefined if it has ended. */
  private begun(index: number): Progress | undefined {
    const known = this.open.get(index);
    if (known || this.emitted.has(index)) return known;
    const progress = { lane: this.writer.lane(), id: "", extras: {}, part: undefined, spoke: false };
    this.open.set(index, progress);
    return progress;
  }

  /** Reads an event while an item is streamed. */
  private readContent(progress: Progress, type: string, event: JsonObject, index: number) {
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.addText(progress, event, type === "response.refusal.delta");
        return;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta": {
        const text = textIn(event.delta);
        progress.spoke ||= progress.lane.isOpen;
        progress.lane.delta(text);
        return;
      }
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        thinkingDelta(progress, event);
        return;
      case "response.content_part.done":
        if (isObject(event.part)) endPart(progress, event.part);
        return;
      default:
        this.readLifecycle(type, event, index);
    }
  }

  private readLifecycle(type: string, event: JsonObject, index: number) {
    switch (type) {
      case "response.created":
      case "response.in_progress":
        if (isObject(event.response)) this.start(event.response);
        return;
      case "response.output_item.added":
        if (isObject(event.item) && !this.open.has(index)) this.addItem(event.item, this.begun(index));
        return;
      case "response.output_item.done":
        if (isObject(event.item)) this.emit(event.item, index);
        return;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        const response = isObject(event.response) ? event.response : {};
        return this.terminate(type.slice("response.".length), response, event);
      }
      default: {
        // Errors of Copilot may come without a type.
        const error = type.startsWith("response.") ? undefined : errorIn(event);
        if (error) this.failed(error);
      }
    }
  }

  /** GitHub Copilot seals its ids, to hundreds of letters: who speaks another dialect gets a short one instead. */
  private start(response: JsonObject) {
    const id = textIn(response.id);
    this.writer.start(id.length > longestId ? "" : id, textIn(response.model));
  }

  private addItem(item: JsonObject, progress: Progress | undefined) {
    if (!progress) return;
    Object.assign(progress, { id: textIn(item.id), extras: messageExtras(item) });
    if (!isCall(item)) return;
    this.called = true;
    progress.lane.open(callBlock(item));
  }

  private addText(progress: Progress, event: JsonObject, refusal: boolean) {
    const { lane } = progress;
    const at = countIn(event.content_index) ?? 0;
    const text = textIn(event.delta);
    if (typeof progress.part === "number" && at < progress.part) return this.cannotFollow();
    if (progress.part !== at) {
      lane.close();
      progress.spoke = false;
    }
    progress.part = at;
    if (text === "") return;
    if (!lane.isOpen) lane.open(textBlock(refusal, progress.extras));
    lane.delta(text);
    progress.extras = {};
    progress.spoke = true;
    this.refused ||= refusal;
  }

  /** Emits what was not yet streamed of the item. */
  private emit(item: JsonObject, index: number) {
    const progress = this.begun(index);
    if (!progress) return;
    const { lane } = progress;
    this.open.delete(index);
    this.emitted.add(index);
    if (isCall(item)) {
      this.called = true;
      emitCall(item, progress);
    } else if (item.type === "reasoning") emitReasoning(item, progress);
    else if (item.type === "message") this.refused = emitMessage(item, progress) || this.refused;
    else {
      const ran = toolRunBy(item);
      const signature = sealOf(item);
      lane.open({ kind: "foreign", dialect: "responses", value: item, ...(ran ? { ran } : {}) });
      lane.close(signature ? { signature } : {});
    }
    lane.end();
  }

  /** Ends the reply; items that were not streamed are read from its output. */
  private terminate(status: unknown, response: JsonObject, event: JsonObject) {
    if (textIn(response.id) !== "") this.start(response);
    this.writer.readInputChanges(response.input_transformations);
    if (status !== "completed" && status !== "incomplete") {
      this.writer.leaveOutBlocks();
      this.emitUsage(response, event);
      return this.failed(errorIn(response) ?? gaveUp);
    }
    const output = Array.isArray(response.output) ? response.output : [];
    const indexes = outputIndexes(output, this.shown);
    // A negative index stands for an item that was not streamed.
    for (const [at, item] of output.entries()) if (isObject(item)) this.emit(item, indexes[at] ?? -1 - at);
    this.writer.endLanes();
    this.emitUsage(response, event);
    const reason = isObject(response.incomplete_details) ? textIn(response.incomplete_details.reason) : "";
    if (status === "incomplete")
      this.writer.finish(entryOf(incompleteReasons, reason) ?? "length", reason || "incomplete");
    else this.writer.finish(this.called ? "tool-call" : this.refused ? "refusal" : "stop", "completed");
  }

  private emitUsage(response: JsonObject, event: JsonObject) {
    const usage = decodeUsage(response, event);
    if (Object.keys(usage).length > 0) this.writer.usage(usage);
  }
}

const isText = (type: string): boolean => type === "response.output_text.delta" || type === "response.refusal.delta";

const isCall = ({ type }: JsonObject): boolean => type === "function_call" || type === "custom_tool_call";

/** Returns whether the message is a refusal. */
function emitMessage(item: JsonObject, progress: Progress): boolean {
  const { lane } = progress;
  const current = typeof progress.part === "number" ? progress.part : 0;
  let extras = progress.id === "" ? messageExtras(item) : progress.extras;
  let refused = false;
  const parts: unknown[] = Array.isArray(item.content) ? item.content : [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at];
    if (!isObject(part) || at < current) continue;
    const refusal = part.type === "refusal";
    const text = textIn(refusal ? part.refusal : part.text);
    if (text === "") continue;
    if (at > current || !progress.spoke) {
      lane.open(textBlock(refusal, extras));
      lane.delta(text);
    }
    lane.close(annotationExtras(part));
    extras = {};
    refused ||= refusal;
  }
  return refused;
}

function endPart(progress: Progress, part: JsonObject) {
  if (!progress.spoke || typeof progress.part !== "number") return;
  progress.lane.close(annotationExtras(part));
  progress.part++;
  progress.spoke = false;
}

const textBlock = (refusal: boolean, extras: WithExtras): Block =>
  refusal ? { kind: "text", refusal, ...extras } : { kind: "text", ...extras };

/** `phase` (commentary or final answer): newer models do worse if it is not sent back. */
const messageExtras = ({ phase }: JsonObject): WithExtras => (phase == null ? {} : extrasOf({ phase }));

const annotationExtras = ({ annotations }: JsonObject): WithExtras =>
  Array.isArray(annotations) && annotations.length > 0 ? extrasOf({ annotations }) : {};

/** The parts of thinking are separated by a blank line. */
function thinkingDelta(progress: Progress, event: JsonObject) {
  const { lane } = progress;
  const delta = textIn(event.delta);
  if (delta === "") return;
  const part = event.summary_index === undefined ? `content ${event.content_index}` : `summary ${event.summary_index}`;
  if (!lane.isOpen) lane.open(thinkingBlock(progress.id));
  if (progress.spoke && progress.part !== part) lane.delta("\n\n");
  progress.part = part;
  progress.spoke = true;
  lane.delta(delta);
}

function emitReasoning(item: JsonObject, progress: Progress) {
  const { lane } = progress;
  const id = progress.id || textIn(item.id);
  const text = progress.spoke ? "" : thinkingText(item);
  const value = textIn(item.encrypted_content);
  if (text === "" && value === "" && !progress.spoke) return;
  if (!lane.isOpen) lane.open(thinkingBlock(id));
  lane.delta(text);
  const signature: Signature = id === "" ? { dialect: "responses", value } : { dialect: "responses", value, id };
  lane.close(value === "" ? {} : { signature });
}

function emitCall(item: JsonObject, { lane, spoke }: Progress) {
  if (!lane.isOpen) lane.open(callBlock(item));
  if (!spoke) lane.delta(textIn(item.type === "function_call" ? item.arguments : item.input));
}

/** The id is needed with the encrypted content that comes at the end. */
const thinkingBlock = (id: string): Block => ({ kind: "thinking", ...extrasOf(id === "" ? undefined : { id }) });

function callBlock(item: JsonObject): Block {
  const fields = new Fields(item);
  fields.skip("type", "id", "call_id", "status", "arguments", "input");
  // Where the name has a namespace, the client gets the tool's own name back.
  if (item.namespace == null) fields.skip("name");
  return {
    kind: "tool-call",
    id: textIn(item.call_id) || ownId("call"),
    name: calledName(textIn(item.name), item.namespace),
    ...(item.type === "custom_tool_call" ? { freeform: true } : {}),
    ...extrasOf(fields.rest()),
  };
}
