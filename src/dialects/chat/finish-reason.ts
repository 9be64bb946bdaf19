/** Why a reply of the chat dialect ended. */
import type { JsonObject } from "../hub/conversation";
import type { Note } from "../hub/upstream-stream";

/** Services written in Go send "" where nothing has ended (Snowflake's, recorded 2026-07): it stands for null. */
export function withoutEmptyReason(choice: JsonObject, note: Note): JsonObject {
  if (choice.finish_reason !== "") return choice;
  note("finish-reason");
  return { ...choice, finish_reason: null };
}
