/** What the strictest reader of a messages stream asks for: Anthropic's SDK, LangChain, Vercel, opencode and Claude Code. */

import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import { isObject } from "../../src/lib/json";
import { jsonOf, type SseFrame } from "../../src/lib/net/stream/sse";

/** The deltas each kind of block may have; a block of another kind comes whole. */
const deltas: Record<string, string[]> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  tool_use: ["input_json_delta"],
  server_tool_use: ["input_json_delta"],
};

const stopReasons = [
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
];

interface OpenBlock {
  type: string;
  index: number;
  input: string;
  signed: boolean;
}

/** Throws unless the frames are one whole stream that ends in `message_stop`. */
export function checkMessagesStream(frames: SseFrame[], _asked?: Conversation): void {
  let started = false;
  let open: OpenBlock | undefined;
  let index = -1;
  let calls = 0;
  let stopReason: unknown;
  let ended = false;

  frames.forEach((frame, at) => {
    if (frame.data === undefined) return;
    const where = `frame ${at} (${frame.event})`;
    const check: (holds: unknown, sentence: string) => asserts holds = (holds, sentence) => {
      if (!holds) throw new Error(`${where}: ${sentence}\n${frame.data}`);
    };
    const event = jsonOf(frame);
    check(isObject(event), "it is no JSON object");
    check(frame.event === event.type, "its event line and its type differ");
    check(!ended, "it follows the end");
    check(
      Object.keys(event).every((key) => !key.startsWith("copilot_")),
      "it holds members of Copilot's own",
    );

    switch (event.type) {
      case "ping":
        return;
      case "message_start": {
        check(!started, "the message starts twice");
        const { message } = event;
        check(isObject(message) && message.type === "message" && message.role === "assistant", "it starts no message");
        check(typeof message.id === "string" && message.id.startsWith("msg_"), "the message has no id");
        check(typeof message.model === "string" && message.model !== "", "the message names no model");
        check(Array.isArray(message.content) && message.content.length === 0, "the message starts with content");
        check(message.stop_reason === null && message.stop_sequence === null, "the message has stopped already");
        checkCounts(message.usage, ["input_tokens", "output_tokens"], check);
        started = true;
        return;
      }
      case "content_block_start": {
        check(started && !open && stopReason === undefined, "a block starts out of order");
        check(event.index === ++index, "its index is not the next one");
        const block = event.content_block;
        check(isObject(block) && typeof block.type === "string", "there is no block");
        check(block.type !== "text" || block.text === "", "the text stands in the start");
        check(
          block.type !== "thinking" || (block.thinking === "" && block.signature === ""),
          "the thinking stands in the start",
        );
        if (block.type === "tool_use") {
          calls++;
          check(typeof block.id === "string" && /^[\w-]+$/.test(block.id), "the call has no id");
          check(typeof block.name === "string" && block.name !== "", "the call has no name");
          check(isObject(block.input) && Object.keys(block.input).length === 0, "the input stands in the start");
        }
        open = { type: block.type, index, input: "", signed: false };
        return;
      }
      case "content_block_delta": {
        check(open && event.index === open.index, "it is a piece of no open block");
        const { delta } = event;
        check(
          isObject(delta) && deltas[open.type]?.includes(String(delta.type)),
          `a block of ${open.type} has no such delta`,
        );
        check(!open.signed, "it follows the signature");
        if (delta.type === "input_json_delta") open.input += delta.partial_json;
        if (delta.type === "signature_delta")
          open.signed = typeof delta.signature === "string" && delta.signature !== "";
        return;
      }
      case "content_block_stop":
        check(open && event.index === open.index, "it ends no open block");
        if (open.type === "tool_use")
          check(isObject(JSON.parse(open.input || "{}")), "the input of the call is no object");
        open = undefined;
        return;
      case "message_delta":
        check(started && !open && stopReason === undefined, "the message ends out of order");
        check(
          isObject(event.delta) && stopReasons.includes(String(event.delta.stop_reason)),
          "it has no reason to stop",
        );
        check("stop_sequence" in event.delta, "it does not say which sequence stopped it");
        checkCounts(event.usage, ["output_tokens"], check);
        stopReason = event.delta.stop_reason;
        check(stopReason === "tool_use" || calls === 0 || stopReason !== "end_turn", "the calls would not be run");
        return;
      case "message_stop":
        check(stopReason !== undefined, "it comes before the reason");
        ended = true;
        return;
      default:
        check(false, "clients do not know its type");
    }
  });
  if (!ended) throw new Error("the stream has no end");
}

function checkCounts(usage: unknown, keys: string[], check: (holds: unknown, sentence: string) => void): void {
  const counts: JsonObject = isObject(usage) ? usage : {};
  for (const key of keys) check(Number.isInteger(counts[key]) && Number(counts[key]) >= 0, `usage has no ${key}`);
}
