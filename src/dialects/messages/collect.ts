/** Collects a streamed message into the body that a full reply would have. */
import { isObject, numberIn } from "../../lib/json";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import { omit, setField, textIn } from "../hub/json";
import { inputObject } from "../hub/tool-input";

/**
 * Merges every field of every event, known or not: `message_start` holds the message, `message_delta` its final fields,
 * as in the `MessageStream` of Anthropic's SDK.
 */
export class CollectedMessage {
  #message: JsonObject = {};
  /** The message's own, once an event corrects it. */
  #usage: JsonObject | undefined;
  readonly #blocks = new Map<number, Growing>();

  read({ type, json: event }: FramedBeat): void {
    switch (type) {
      case "message_start":
        this.#message = isObject(event.message) ? { ...event.message } : {};
        this.#usage = undefined;
        return;
      case "content_block_start":
        if (isObject(event.content_block))
          this.#blocks.set(numberIn(event.index) ?? this.#blocks.size, {
            block: { ...event.content_block },
            input: "",
          });
        return;
      case "content_block_delta": {
        const growing = this.#blocks.get(numberIn(event.index) ?? this.#blocks.size - 1);
        if (growing && isObject(event.delta)) grow(growing, event.delta);
        return;
      }
      case "message_delta": {
        const ending = isObject(event.delta) ? event.delta : {};
        for (const members of [omit(event, deltaOnly) ?? {}, ending])
          for (const [key, value] of Object.entries(members)) setField(this.#message, key, value);
        if (isObject(event.usage)) this.#addUsage(event.usage);
      }
    }
  }

  /** Later numbers replace earlier ones; null does not. */
  #addUsage(numbers: JsonObject): void {
    this.#usage ??= isObject(this.#message.usage) ? { ...this.#message.usage } : {};
    for (const [key, value] of Object.entries(numbers))
      if (value != null || !Object.hasOwn(this.#usage, key)) setField(this.#usage, key, value);
    this.#message.usage = this.#usage;
  }

  body(): JsonObject {
    return { ...this.#message, content: [...this.#blocks.values()].map(whole) };
  }
}

const deltaOnly = new Set(["type", "delta", "usage"]);

interface Growing {
  block: JsonObject;
  /** The JSON of a call's input so far. */
  input: string;
  /** The block's own list, once it grows. */
  citations?: unknown[];
}

function grow(growing: Growing, delta: JsonObject): void {
  const { block } = growing;
  for (const [key, piece] of Object.entries(delta)) {
    const before = block[key];
    if (key === "type") continue;
    if (key === "partial_json") growing.input += textIn(piece);
    else if (key === "citation") {
      growing.citations ??= Array.isArray(block.citations) ? [...block.citations] : [];
      growing.citations.push(piece);
      block.citations = growing.citations;
    }
    // A signature comes in one piece, text in several.
    else if (key !== "signature" && typeof before === "string" && typeof piece === "string")
      block[key] = before + piece;
    else block[key] = piece;
  }
}

const whole = ({ block, input }: Growing): JsonObject =>
  input.trim() === "" ? block : { ...block, input: inputObject({ input }) };
