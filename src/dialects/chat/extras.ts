/**
 * Fields that the hub does not read: kept as extras under their wire name, written again where this dialect has them.
 */
import { chatExtras, sharedExtras } from "../hub/chat-extras";
import type { JsonObject, WithExtras } from "../hub/conversation";
import { dropOthers } from "../hub/ignorable-fields";

/** Fields that only the responses dialect has; a responses client may have sent them. */
export const responsesOnly = {
  request: new Set([
    ...["background", "client_metadata", "context_management", "conversation", "include", "instructions"],
    ...["max_tool_calls", "previous_response_id", "prompt", "reasoning", "text", "truncation"],
  ]),
  others: new Set([
    ...[
      "additional_tools",
      "annotations",
      "content",
      "defer_loading",
      "encrypted_content",
      "file_id",
      "file_url",
      "id",
    ],
    ...[
      "instructions",
      "local name",
      "found tool",
      "tool search",
      "logprobs",
      "namespace",
      "phase",
      "role",
      "status",
      "summary",
      "type",
    ],
  ]),
};

/** Unread fields of a nested object, under that object's name. */
export function nested(name: string, members: JsonObject | undefined): JsonObject {
  return members ? { [name]: members } : {};
}

/** Reads the cache mark, in Anthropic's or Copilot's form. */
export function cacheOf(holder: JsonObject): { cache?: true } {
  return holder.cache_control != null || holder.copilot_cache_control != null ? { cache: true } : {};
}

/** Whether a field of a responses item is lost in the chat dialect. */
const isUnknown = (key: string): boolean => !responsesOnly.others.has(key) && key !== "detail";

/** The extras that this dialect has; the names of all others are added to `dropped`. */
export function ownExtras({ extras }: WithExtras, dropped: Set<string>): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], dropped);
  const openai = extras?.openai ?? {};
  const shared = sharedExtras(openai);
  for (const key of Object.keys(shared)) if (isUnknown(key) && shared[key] != null) dropped.add(key);
  const { detail } = shared;
  return { ...chatExtras(openai), ...(detail === undefined ? {} : { detail }) };
}
