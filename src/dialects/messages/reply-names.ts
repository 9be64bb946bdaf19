/** The names of deltas and stop reasons in the messages dialect. */
import { entryOf } from "../../lib/json";
import type { Block, DeltaBlock, StopReason } from "../hub/reply";

export const stopReasons = new Map<unknown, StopReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop-sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool-call"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"],
]);

export const stopReasonNames: Record<StopReason, string> = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-call": "tool_use",
  refusal: "refusal",
  pause: "pause_turn",
};

const deltaTypes: Record<DeltaBlock["kind"], string> = {
  text: "text_delta",
  thinking: "thinking_delta",
  "tool-call": "input_json_delta",
};

/** Undefined for a block that has no text of its own. */
export const deltaTypeOf = (kind: Block["kind"]): string | undefined => entryOf<string>(deltaTypes, kind);

/** The field that holds a delta's text. */
export const textFieldOf = new Map<unknown, string>([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"],
]);
