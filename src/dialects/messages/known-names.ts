/** Members of messages: Anthropic's own, and those that recordings of Copilot have. */
import { lazy } from "../../lib/lazy";
import { charge, knownNamesOf } from "../hub/known-names";
import { stopReasons } from "./reply-names";

const stops = [...stopReasons.keys()].join("|");

const usage = `input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens service_tier inference_geo speed
  cache_creation{ephemeral_1h_input_tokens ephemeral_5m_input_tokens} output_tokens_details{thinking_tokens}
  server_tool_use{web_search_requests web_fetch_requests tool_search_requests} iterations`;

const around = `context_management{applied_edits} input_transformations{type path reason} container ${charge} copilot_quota_snapshots`;

const citation = `type cited_text title url encrypted_index document_index document_title file_id source search_result_index
  start_char_index end_char_index start_page_number end_page_number start_block_index end_block_index`;

/** Blocks of Anthropic's own tools vary; their content is not looked at. */
const block = `type!=text|thinking|redacted_thinking|tool_use|server_tool_use|tool_search_tool_result|web_search_tool_result|web_fetch_tool_result|code_execution_tool_result|bash_code_execution_tool_result|text_editor_code_execution_tool_result|mcp_tool_use|mcp_tool_result|container_upload|compaction|advisor_tool_result
  text thinking signature data id name input citations{${citation}} content tool_use_id caller is_error server_name`;

const stop = "stop_reason stop_sequence stop_details{type category explanation recommended_model}".replace(
  "stop_reason",
  `stop_reason=${stops}`,
);

const message = `id! type!=message role!=assistant model! content!{${block}} ${stop} usage!{${usage}} ${around}`;

const delta = `type!=text_delta|thinking_delta|signature_delta|input_json_delta|citations_delta|compaction_delta
  text thinking signature partial_json citation{${citation}} content`;

const events: Record<string, string> = {
  message_start: `message!{${message}} ${charge}`,
  content_block_start: `index! content_block!{${block}}`,
  content_block_delta: `index! delta!{${delta}} copilot_annotations`,
  content_block_stop: "index!",
  message_delta: `delta!{${stop} container} usage{${usage}} ${around}`,
  message_stop: "amazon-bedrock-invocationMetrics",
  ping: "",
  error: "error!{type message code} request_id",
};

export const knownNames = lazy(() => knownNamesOf(`${message} amazon-bedrock-invocationMetrics`, events));
