/** Brings an upstream's stream into the grammar of Anthropic's Messages API. */
import { isObject } from "../../lib/json";
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { JsonObject } from "../hub/conversation";
import { Normalizer } from "../hub/upstream-stream";
import { errorIn, invalidEvent } from "./errors";

/** The event types that Anthropic's clients know; some of them fail on others. */
const eventTypes: ReadonlySet<unknown> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
  "error",
]);

export class MessagesNormalizer extends Normalizer {
  protected readonly invalid = invalidEvent;
  /** The indexes of the open blocks. */
  readonly #open = new Set<unknown>();

  protected readEvent(json: JsonObject, frame: SseFrame) {
    const failure = errorIn(json);
    if (failure && !isProperError(json)) {
      this.notes.addFixup("error-event");
      return this.fail(failure);
    }
    const type = json.type ?? frame.event;
    if (typeof type !== "string" || !eventTypes.has(type)) return this.notes.addFixup("foreign-event");
    if (type === "content_block_start") this.#open.add(json.index);
    if (type === "content_block_stop" && !this.#open.delete(json.index) && json.index == null) this.#open.clear();
    if (type === "content_block_delta" && this.#open.size === 0) this.startText(json);
    const typed = json.type === undefined ? { type, ...json } : json;
    this.emit(type, typed, frame, type === "message_stop" || type === "error");
  }

  /** Some upstreams omit the start of a text block. */
  private startText({ index, delta }: JsonObject): void {
    if (!isObject(delta) || delta.type !== "text_delta") return;
    this.#open.add(index);
    this.notes.addFixup("block-start");
    const type = "content_block_start";
    const json = { type, index, content_block: { type: "text", text: "" } };
    this.emit(type, json, jsonFrame(json, type));
  }

  /** Clients read the data of the events only that they know. */
  protected override readUnparsed(frame: SseFrame): void {
    if (frame.event === undefined || eventTypes.has(frame.event)) super.readUnparsed(frame);
    else this.notes.addFixup("foreign-event");
  }

  protected readMark(): void {
    this.notes.addFixup("foreign-event");
  }

  protected override readLate({ data }: SseFrame): void {
    if (data !== undefined) this.notes.addFixup("foreign-event");
  }
}

/** An error in Anthropic's form, which is passed on unchanged. */
const isProperError = ({ type, error }: JsonObject): boolean =>
  type === "error" && isObject(error) && typeof error.type === "string" && typeof error.message === "string";
