/** Messages passed through: the edits that a request or a reply may need. */
import { isObject } from "../../lib/json";
import { jsonFrame, jsonOf, type SseFrame } from "../../lib/net/stream/sse";
import type { ReplyContext } from "../codec";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import type { Notes } from "../hub/notes";
import type { ReplyEvent, ReplyFailure } from "../hub/reply";
import { frameOf, PassedStream, withModel, withoutCopilot } from "../hub/upstream-stream";
import { errorFrame } from "./errors";
import { pingFrame } from "./reply-writer";

/** A stream on its way to a Messages client. */
export class PassedMessage extends PassedStream {
  /** The open blocks by their index, and whether a part of one is of use. */
  readonly #open = new Map<unknown, boolean>();

  protected pass({ type, json, frame }: FramedBeat): void {
    if (type === "content_block_start") this.#open.set(json.index, isText(json.content_block));
    if (type === "content_block_stop" && !this.#open.delete(json.index) && json.index == null) this.#open.clear();
    if (frame.event !== type) this.notes.addFixup("event-name");
    this.next.push(frameOf(frame, fixEvent(json, this.context, this.notes), type));
  }

  protected writeError(error: ReplyFailure): void {
    // An incomplete call must not look complete.
    for (const [index, mayEnd] of this.#open)
      if (mayEnd) this.next.push(jsonFrame({ type: "content_block_stop", index }, "content_block_stop"));
    this.next.push(errorFrame(error));
  }

  protected writeBeat(): void {
    this.next.push(pingFrame());
  }
}

/** Judges the event by itself, without the events before it. */
export function endIn(frame: SseFrame): ReplyEvent | undefined {
  const event = jsonOf(frame);
  const type = isObject(event) ? (event.type ?? frame.event) : undefined;
  if (type === "message_stop") return { type: "finish", reason: "stop" };
  if (type !== "error") return undefined;
  return { type, code: "upstream_error", message: "The stream ended with an error event." };
}

function fixEvent(event: JsonObject, context: ReplyContext, notes: Notes): JsonObject {
  const plain = withoutCopilot(event, notes);
  if (plain.type === "message_delta") return withUsage(plain, { output_tokens: 0 }, notes);
  if (plain.type !== "message_start" || !isObject(plain.message)) return plain;
  const message = fixFull(plain.message, context, notes);
  return message === plain.message ? plain : { ...plain, message };
}

export const fixFull = (message: JsonObject, context: ReplyContext, notes: Notes): JsonObject =>
  withModel(withUsage(withoutCopilot(message, notes), { input_tokens: 0, output_tokens: 0 }, notes), context, notes);

/** Strict clients fail without these numbers. */
function withUsage(holder: JsonObject, unknown: JsonObject, notes: Notes): JsonObject {
  if (isObject(holder.usage)) return holder;
  notes.addFixup("usage-field");
  return { ...holder, usage: unknown };
}

const isText = (block: unknown): boolean => isObject(block) && (block.type === "text" || block.type === "thinking");
