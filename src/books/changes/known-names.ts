/** Names that GitHub Copilot is known to use outside of replies. Facts: recordings and clients of 2025 and 2026. */
import { shape } from "../../lib/json-shape";
import { lazy } from "../../lib/lazy";

/** Of a price tier: the names of 2026-08, and those of 2026-06 that they replaced. */
const prices = `input_price output_price cache_read_price cache_write_price cache_write_1h_price max_prompt_tokens
  cache_price context_max`;

/** An item of the model list. */
export const modelShape = lazy(() =>
  shape(`id! object name! vendor! version preview model_picker_enabled model_picker_category model_picker_price_category
    is_chat_default is_chat_fallback supported_endpoints policy{state terms} warning_messages{code message} info_messages custom_model
    warning_text{data_retention}
    request_headers
    billing{is_premium multiplier restricted_to auto_discount promo{id discount_percent ends_at message show_banner}
      token_prices{batch_size default{${prices}} long_context{${prices}}}}
    capabilities!{family! object tokenizer type!=chat|completion|embeddings|decision
      limits{max_context_window_tokens max_prompt_tokens max_output_tokens max_non_streaming_output_tokens max_inputs
        vision{max_prompt_image_size max_prompt_images supported_media_types}}
      supports{streaming tool_calls parallel_tool_calls structured_outputs vision prediction dimensions adaptive_thinking
        min_thinking_budget max_thinking_budget reasoning_effort tool_search context_editing}}`),
);

/** A reply of the embeddings endpoint. */
export const embeddingsShape = lazy(() =>
  shape("object data!{object index! embedding!} model usage{prompt_tokens total_tokens} copilot_usage"),
);

/** Headers of any web server and of what stands before it. */
const usualHeaders = new Set(
  `access-control-allow-origin access-control-expose-headers age alt-svc cache-control cf-cache-status cf-ray connection
   content-encoding content-language content-length content-security-policy content-type date etag expires keep-alive
   last-modified nel permissions-policy pragma referrer-policy report-to request-id retry-after retry-after-ms server
   server-timing set-cookie strict-transport-security timing-allow-origin trailer transfer-encoding vary via`.split(
    /\s+/,
  ),
);

/** Headers of GitHub, of Copilot and of the providers behind it. */
const copilotHeaders =
  /^(?:x-request-id|x-github-(?:request-id|backend|media-type|api-version-selected)|x-quota-snapshot-[\w-]+|x-usage-ratelimit-[\w-]+|x-ratelimit-[\w-]+|x-copilot-(?:api-exp-assignment-context|experiment|service-request-id)|x-(?:content-type-options|frame-options|xss-protection|envoy-upstream-service-time|served-by|cache|ms-region|ms-client-request-id|should-retry)|apim-request-id|azureml-[\w-]+|cmp-upstream-response-duration|copilot-edits-session|openai-(?:model|organization|processing-ms|project|version)|anthropic-(?:organization-id|ratelimit-[\w-]+)|x-models-etag|x-reasoning-included)$/;

/** @param name In lower case. */
export const isKnownHeader = (name: string): boolean => usualHeaders.has(name) || copilotHeaders.test(name);
