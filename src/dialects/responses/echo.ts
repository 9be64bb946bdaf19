/**
 * The fields of a reply that repeat its request, with what OpenAI's API answers where nothing was asked. OpenAI's package and Open
 * Responses' schema of a response (openresponses/openresponses, November 2026) require them.
 */

import type { Conversation, JsonObject } from "../hub/conversation";
import { unnoted } from "../hub/notes";
import { encodeTextOptions, instructionsOf } from "./request";
import { encodeChoice, encodeTools } from "./tools";

export function echoOf(conversation: Conversation): JsonObject {
  const extras = conversation.extras?.openai ?? {};
  return {
    access_programs: null,
    background: false,
    frequency_penalty: 0,
    instructions: instructionsOf(conversation) ?? null,
    max_output_tokens: conversation.maxTokens ?? null,
    max_tool_calls: extras.max_tool_calls ?? null,
    metadata: extras.metadata ?? {},
    model: conversation.model,
    parallel_tool_calls: conversation.parallelTools ?? true,
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: extras.prompt_cache_key ?? null,
    reasoning: { effort: conversation.reasoning?.effort ?? null, summary: conversation.reasoning?.summary ?? null },
    safety_identifier: extras.safety_identifier ?? null,
    service_tier: "default",
    store: false,
    temperature: conversation.temperature ?? 1,
    text: { format: { type: "text" }, ...encodeTextOptions(conversation) },
    tool_choice: encodeChoice(conversation) ?? "auto",
    tools: encodeTools(conversation, unnoted).list,
    top_logprobs: extras.top_logprobs ?? 0,
    top_p: conversation.topP ?? 1,
    truncation: extras.truncation ?? "disabled",
    user: extras.user ?? null,
  };
}
