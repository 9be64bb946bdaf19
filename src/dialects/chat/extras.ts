/** Members that ride along: into the bag under the wire's own name, and out of it as far as this dialect has the word. */
import { chatExtras, sharedExtras } from "../hub/chat-extras";
import type { JsonObject, WithExtras } from "../hub/conversation";
import { ignorableFields } from "../hub/ignorable-fields";

/** What only the responses dialect has a word for: a responses client's bag may hold it. */
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
    ...["instructions", "local name", "logprobs", "namespace", "phase", "role", "status", "summary", "type"],
  ]),
};

/** Members nobody reads of an object within an object, under that object's name. */
export function nested(name: string, members: JsonObject | undefined): JsonObject {
  return members ? { [name]: members } : {};
}

/** Whether the prompt is worth caching up to here, in Anthropic's words or in Copilot's. */
export function cacheOf(holder: JsonObject): { cache?: true } {
  return holder.cache_control != null || holder.copilot_cache_control != null ? { cache: true } : {};
}

/** What a responses item bears that this dialect has no word for, and that nobody has a use for where it is not known. */
const isUnknown = (key: string): boolean => !responsesOnly.others.has(key) && key !== "detail";

/** The members of a bag this dialect may write; those of another's words are named. */
export function ownExtras({ extras }: WithExtras, dropped: Set<string>): JsonObject {
  for (const key of Object.keys(extras?.anthropic ?? {})) if (!ignorableFields.anthropic.has(key)) dropped.add(key);
  const openai = extras?.openai ?? {};
  const shared = sharedExtras(openai);
  for (const key of Object.keys(shared)) if (isUnknown(key) && shared[key] != null) dropped.add(key);
  const { detail } = shared;
  return { ...chatExtras(openai), ...(detail === undefined ? {} : { detail }) };
}
