/** Members of chat completions: OpenAI's own, and those that recordings of Copilot have. */
import { shape } from "../../lib/json-shape";
import { lazy } from "../../lib/lazy";
import { charge, type KnownNames } from "../hub/known-names";

const filters = `error{code message} hate{filtered severity} self_harm{filtered severity} sexual{filtered severity}
  violence{filtered severity} jailbreak{detected filtered} protected_material_code{detected filtered citation}
  protected_material_text{detected filtered} profanity{detected filtered} custom_blocklists`;

const usage = `completion_tokens prompt_tokens total_tokens reasoning_tokens
  completion_tokens_details{accepted_prediction_tokens rejected_prediction_tokens audio_tokens reasoning_tokens text_tokens}
  prompt_tokens_details{cached_tokens cache_write_tokens cache_creation_input_tokens audio_tokens image_tokens text_tokens}`;

const annotations = `CodeVulnerability IPCodeCitations TextCopyright Sexual SexualPattern Violence HateSpeech
  HateSpeechPattern SelfHarm PromptPromBlockList`;

const message = `role=assistant|function content refusal padding reasoning_text reasoning_opaque reasoning_content reasoning
  cot_id cot_summary annotations copilot_annotations{${annotations}} function_call{name arguments}
  tool_calls{index id type=function|custom function{name arguments} custom{name input}} audio`;

const finish = "finish_reason=stop|length|tool_calls|content_filter|function_call|error";

const around = `id model object=chat.completion|chat.completion.chunk| created system_fingerprint service_tier obfuscation
  prompt_filter_results{prompt_index content_filter_results{${filters}}} usage{${usage}}
  ${charge}
  copilot_references copilot_confirmation copilot_errors copilot_quota_snapshots error{code message type param metadata}`;

const choice = `index ${finish} logprobs content_filter_results{${filters}}
  content_filter_offsets{check_offset start_offset end_offset}`;

export const knownNames = lazy(
  (): KnownNames => ({
    reply: shape(`${around} choices!{${choice} message!{${message}}}`),
    events: new Map([["", shape(`${around} choices{${choice} delta{${message}}}`)]]),
    typeOf: () => "",
  }),
);
