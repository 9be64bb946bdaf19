/**
 * Fields that the hub does not read: kept as extras under their wire name, written again where this dialect has them.
 */
import { plainName } from "../../lib/json-shape";
import type { JsonObject, WithExtras } from "../hub/conversation";
import type { Fields } from "../hub/fields";
import { dropOthers } from "../hub/ignorable-fields";
import type { Notes } from "../hub/notes";
import { extrasOf } from "../openai";

/** Fields that only the responses dialect has; a responses client may have sent them. */
export const responsesOnly = {
  request: new Set([
    ...["background", "client_metadata", "context_management", "conversation", "include", "instructions"],
    ...["max_tool_calls", "previous_response_id", "prompt", "reasoning", "text", "truncation"],
  ]),
  others: new Set([
    ...["annotations", "content", "defer_loading", "encrypted_content", "file_id", "file_url", "id"],
    ...["logprobs", "namespace", "phase", "role", "status", "summary", "type"],
  ]),
};

/**
 * The fields that nobody has read, with those of nested objects under the objects' names.
 * @param shared Those that the Responses API has too.
 */
export function unreadExtras(holder: Fields, inner: Record<string, Fields> = {}, shared?: JsonObject): WithExtras {
  const members = { ...holder.rest() };
  for (const [name, fields] of Object.entries(inner)) {
    const rest = fields.rest();
    if (rest) members[name] = rest;
  }
  return extrasOf(shared, members);
}

/** Reads the cache mark, in Anthropic's or Copilot's form. */
export function cacheOf(holder: Fields): { cache?: true } {
  const marks = [holder.any("cache_control"), holder.any("copilot_cache_control")];
  return marks.some((mark) => mark != null) ? { cache: true } : {};
}

/** Whether a field of a responses item is lost in the chat dialect; `detail` is an image's, which reads it itself. */
const isUnknown = (key: string): boolean => !responsesOnly.others.has(key) && key !== "detail";

/** The extras that this dialect has; all others are noted as dropped. */
export function ownExtras({ extras }: WithExtras, notes: Notes): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], notes);
  const openai = extras?.openai ?? {};
  for (const key of Object.keys(openai)) if (isUnknown(key) && openai[key] != null) notes.addDropped(plainName(key));
  return { ...extras?.chat };
}
