/** Why a reply of the chat dialect ended. */
import type { JsonObject } from "../hub/conversation";
import type { ReportFixup } from "../hub/upstream-stream";

/** Services written in Go send "" where nothing has ended (Snowflake's, recorded 2026-07): it stands for null. */
export function withoutEmptyReason(choice: JsonObject, report: ReportFixup): JsonObject {
  if (choice.finish_reason !== "") return choice;
  report("finish-reason");
  return { ...choice, finish_reason: null };
}
