/** The names of the thinking field in a chat message. */
import type { JsonObject } from "../hub/conversation";

/** Copilot's name first; the others are used by Azure and by other providers. */
export const thinkingFields = ["reasoning_text", "cot_summary", "reasoning_content", "reasoning"] as const;

/** The thinking text in a delta or message, under any of the names. */
export function thoughtIn(message: JsonObject): string {
  for (const spelling of thinkingFields) {
    const thought = message[spelling];
    if (typeof thought === "string" && thought !== "") return thought;
  }
  return "";
}

/** The fields of a message that hold text. */
export const textFields: readonly string[] = ["content", "refusal", ...thinkingFields];

/** Whether a delta or message has text. */
export const hasText = (message: JsonObject): boolean =>
  textFields.some((name) => typeof message[name] === "string" && message[name] !== "");
