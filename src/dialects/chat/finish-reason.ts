/** Why a reply of the chat dialect ended. */
import type { JsonObject } from "../hub/conversation";
import type { Notes } from "../hub/notes";

/** Services written in Go send "" where nothing has ended (Snowflake's, recorded 2026-07): it stands for null. */
export function withoutEmptyReason(choice: JsonObject, notes: Notes): JsonObject {
  if (choice.finish_reason !== "") return choice;
  notes.addFixup("finish-reason");
  return { ...choice, finish_reason: null };
}
