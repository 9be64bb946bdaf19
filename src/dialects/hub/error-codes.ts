/**
 * What the code or type of an error means where it comes without a status: in a stream. Types are Anthropic's, codes are
 * Copilot's and OpenAI's (openai 7.55, `ResponseError`).
 */
import { type ErrorKind, errorKinds } from "../../lib/errors";

/** The request is at fault: whoever sends it again gets the same. */
export const badRequestCode =
  /^(?:bad_request|invalid_(?:request|reasoning_effort|prompt|encrypted|image|base64_image|value|type)|context_length|model_max_prompt|string_above|un(?:supported|known|recognized)_|missing_|off_topic|previous_response_not_found|model_not_available|no_available_model|data_residency_mismatch|empty_image|failed_to_download_image|image_(?!content))/;

/** What was asked is not answered: a filter or a policy forbids it. */
export const forbiddenCode = /^(?:content_(?:filter|policy)|bio_policy|misalignment_policy|image_content_policy)/;

/** In this order. */
const words: readonly [RegExp, ErrorKind][] = [
  [badRequestCode, "invalid_request"],
  [forbiddenCode, "invalid_request"],
  // Codes of dragoman's own. Somebody ended the request on purpose: it is not to be sent again.
  [/^(?:cancelled|budget_exceeded)$/, "unable"],
  [/timeout/, "timeout"],
  [/overloaded|disconnected|shutting_down/, "no_account"],
  [/rate_limit/, "rate_limit"],
  [/quota|spend_limit|^billing_/, "quota"],
  [/context_length/, "invalid_request"],
  [/^server_error/, "internal"],
];

/** Undefined for a code that says nothing of the kind. */
export const kindOfCode = (code: string): ErrorKind | undefined =>
  Object.hasOwn(errorKinds, code) ? (code as ErrorKind) : words.find(([pattern]) => pattern.test(code))?.[1];
