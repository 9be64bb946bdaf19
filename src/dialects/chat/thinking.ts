/** What thinking is called in a chat message. */
import type { JsonObject } from "../hub/conversation";

/** Copilot's own word first; the others are what Azure, and models served by others, call the same. */
export const thinkingFields = ["reasoning_text", "cot_summary", "reasoning_content", "reasoning"] as const;

/** The piece of thinking in a delta or message, under whichever name. */
export function thoughtIn(message: JsonObject): string {
  for (const spelling of thinkingFields) {
    const thought = message[spelling];
    if (typeof thought === "string" && thought !== "") return thought;
  }
  return "";
}
