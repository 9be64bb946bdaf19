/** The fields of a reply that repeat its request. */
import type { Conversation, JsonObject } from "../hub/conversation";
import { encodeTextOptions, instructionsOf } from "./request";
import { encodeChoice, encodeTools } from "./tools";

export function echoOf(conversation: Conversation): JsonObject {
  const extras = conversation.extras?.openai ?? {};
  return {
    access_programs: null,
    instructions: instructionsOf(conversation) ?? null,
    max_output_tokens: conversation.maxTokens ?? null,
    metadata: extras.metadata ?? {},
    model: conversation.model,
    parallel_tool_calls: conversation.parallelTools ?? true,
    previous_response_id: null,
    prompt_cache_key: extras.prompt_cache_key ?? null,
    reasoning: { effort: conversation.reasoning?.effort ?? null, summary: conversation.reasoning?.summary ?? null },
    safety_identifier: extras.safety_identifier ?? null,
    service_tier: "default",
    store: false,
    temperature: conversation.temperature ?? 1,
    text: { format: { type: "text" }, ...encodeTextOptions(conversation) },
    tool_choice: encodeChoice(conversation) ?? "auto",
    tools: encodeTools(conversation, new Set()).list,
    top_p: conversation.topP ?? 1,
    truncation: extras.truncation ?? "disabled",
    user: extras.user ?? null,
  };
}
