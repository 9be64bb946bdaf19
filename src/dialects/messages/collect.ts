/** Collects a streamed message into the body that a full reply would have. */
import { isObject, numberIn } from "../../json";
import { jsonOf } from "../../net/stream/sse";
import type { Collector } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { omit, textIn } from "../hub/json";
import { inputObject } from "../hub/tool-input";

/**
 * Merges every field of every event, known or not: `message_start` holds the message, `message_delta` its final fields,
 * as in the `MessageStream` of Anthropic's SDK.
 */
export function collectStream(): Collector {
  let message: JsonObject = {};
  const blocks = new Map<number, Growing>();
  return {
    push(frame) {
      const event = frame.data ? jsonOf(frame) : undefined;
      if (!isObject(event)) return;
      const index = numberIn(event.index) ?? blocks.size - 1;
      switch (event.type ?? frame.event) {
        case "message_start":
          message = isObject(event.message) ? event.message : {};
          return;
        case "content_block_start":
          if (isObject(event.content_block))
            blocks.set(numberIn(event.index) ?? blocks.size, { block: { ...event.content_block }, input: "" });
          return;
        case "content_block_delta": {
          const growing = blocks.get(index);
          if (growing && isObject(event.delta)) grow(growing, event.delta);
          // Some upstreams omit the start of a text block.
          else if (isObject(event.delta)) blocks.set(index, { block: begun(event.delta), input: "" });
          return;
        }
        case "message_delta": {
          const usage = merged(message.usage, event.usage);
          const ending = isObject(event.delta) ? event.delta : {};
          message = { ...message, ...omit(event, deltaOnly), ...ending, ...(usage ? { usage } : {}) };
        }
      }
    },
    body: () => ({ ...message, content: [...blocks.values()].map(whole) }),
  };
}

const deltaOnly = new Set(["type", "delta", "usage"]);

interface Growing {
  block: JsonObject;
  /** The JSON of a call's input so far. */
  input: string;
}

const begun = ({ text }: JsonObject): JsonObject => ({ type: "text", text: textIn(text) });

function grow(growing: Growing, delta: JsonObject): void {
  const { block } = growing;
  for (const [key, piece] of Object.entries(delta)) {
    const before = block[key];
    if (key === "type") continue;
    if (key === "partial_json") growing.input += textIn(piece);
    else if (key === "citation") block.citations = [...(Array.isArray(block.citations) ? block.citations : []), piece];
    // A signature comes in one piece, text in several.
    else if (key !== "signature" && typeof before === "string" && typeof piece === "string")
      block[key] = before + piece;
    else block[key] = piece;
  }
}

const whole = ({ block, input }: Growing): JsonObject =>
  input.trim() === "" ? block : { ...block, input: inputObject({ input }) };

/** Later numbers replace earlier ones; null does not. */
function merged(before: unknown, after: unknown): JsonObject | undefined {
  if (!isObject(after)) return undefined;
  const usage: JsonObject = isObject(before) ? { ...before } : {};
  for (const [key, value] of Object.entries(after)) if (value != null || !(key in usage)) usage[key] = value;
  return usage;
}
