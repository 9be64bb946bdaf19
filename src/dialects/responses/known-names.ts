/** Members of responses: OpenAI's own, and those that recordings of Copilot have. */
import { lazy } from "../../lib/lazy";
import { charge, knownNamesOf } from "../hub/known-names";

const usage = `input_tokens output_tokens total_tokens input_tokens_details{cached_tokens cache_write_tokens}
  output_tokens_details{reasoning_tokens}`;

const part = `type!=output_text|refusal|reasoning_text|summary_text text refusal logprobs
  annotations{type url title start_index end_index file_id filename index container_id}`;

/** Items of OpenAI's own tools vary; what is inside them is not looked at. */
const item = `type!=message|reasoning|function_call|custom_tool_call|compaction|compaction_summary|web_search_call|file_search_call|code_interpreter_call|image_generation_call|computer_call|local_shell_call|shell_call|shell_call_output|apply_patch_call|apply_patch_call_output|mcp_call|mcp_list_tools|mcp_approval_request|tool_search_call|tool_search_output|program|program_output
  id call_id status name namespace arguments input role=assistant phase content{${part}} summary{${part}}
  encrypted_content action output outputs results queries code container_id caller execution environment operation error
  server_label tools approval_request_id fingerprint max_output_length created_by`;

const response = `id! object=response created_at completed_at status=in_progress|completed|incomplete|failed|cancelled|queued
  model! output!{${item}} output_text error{code message type param} incomplete_details{reason} instructions max_output_tokens
  max_tool_calls parallel_tool_calls previous_response_id prompt_cache_key prompt_cache_retention prompt_cache_options
  reasoning safety_identifier service_tier store temperature text tool_choice tools tool_usage top_logprobs top_p truncation
  input_transformations{type id action reason} user metadata background billing context_management conversation frequency_penalty presence_penalty moderation prompt
  usage{${usage}} ${charge} copilot_quota_snapshots`;

const whole = `response!{${response}} ${charge} copilot_quota_snapshots`;
const ofItem = "output_index! item_id";
const ofPart = `${ofItem} content_index`;
const ofSummary = `${ofItem} summary_index`;
const delta = "delta! obfuscation";
const step = ofItem;

const events: Record<string, string> = {
  "response.created": whole,
  "response.in_progress": whole,
  "response.queued": whole,
  "response.completed": whole,
  "response.incomplete": whole,
  "response.failed": whole,
  "response.cancelled": whole,
  "response.output_item.added": `output_index! item!{${item}}`,
  "response.output_item.done": `output_index! item!{${item}}`,
  "response.content_part.added": `${ofPart} part!{${part}}`,
  "response.content_part.done": `${ofPart} part!{${part}}`,
  "response.output_text.delta": `${ofPart} ${delta} logprobs`,
  "response.output_text.done": `${ofPart} text! logprobs`,
  "response.output_text.annotation.added": `${ofPart} annotation! annotation_index`,
  "response.refusal.delta": `${ofPart} ${delta}`,
  "response.refusal.done": `${ofPart} refusal!`,
  "response.function_call_arguments.delta": `${ofItem} ${delta}`,
  "response.function_call_arguments.done": `${ofItem} arguments! name`,
  "response.custom_tool_call_input.delta": `${ofItem} ${delta}`,
  "response.custom_tool_call_input.done": `${ofItem} input!`,
  "response.reasoning_summary_part.added": `${ofSummary} part!{${part}}`,
  "response.reasoning_summary_part.done": `${ofSummary} part!{${part}}`,
  "response.reasoning_summary_text.delta": `${ofSummary} ${delta}`,
  "response.reasoning_summary_text.done": `${ofSummary} text!`,
  "response.reasoning_text.delta": `${ofPart} ${delta}`,
  "response.reasoning_text.done": `${ofPart} text!`,
  "response.web_search_call.in_progress": step,
  "response.web_search_call.searching": step,
  "response.web_search_call.completed": step,
  "codex.rate_limits": "plan_type rate_limits credits",
  ping: "cost",
  error: "code message param error{code message type param} copilot_quota_snapshots",
};

export const knownNames = lazy(() =>
  knownNamesOf(
    response,
    Object.fromEntries(Object.entries(events).map(([type, members]) => [type, `sequence_number ${members}`])),
  ),
);
