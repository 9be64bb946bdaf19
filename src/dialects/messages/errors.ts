/** Errors of the messages dialect: those of upstreams, and those written to clients. */

import { errorKinds, type ProxyError } from "../../lib/errors";
import { isObject } from "../../lib/json";
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import { failureIn, invalidEventOf, invalidReplyOf } from "../hub/block-lifecycle";
import { contextWords } from "../hub/context-limit";
import type { JsonObject } from "../hub/conversation";
import { kindOfCode } from "../hub/error-codes";
import type { ReplyError, ReplyFailure } from "../hub/reply";

export const invalidEvent = invalidEventOf("a Messages event");
export const invalidReply = invalidReplyOf("a Messages reply");

/** The error in a body or event, in Anthropic's or Copilot's form. */
export function errorIn(value: unknown): ReplyError | undefined {
  if (!isObject(value) || (value.type !== "error" && value.error == null)) return undefined;
  const error = isObject(value.error) ? value.error : { message: value.error ?? value.message };
  return { type: "error", ...failureIn(error) };
}

/** The last event of a stream that failed. */
export function errorFrame({ code, message }: ReplyFailure): SseFrame {
  return jsonFrame(
    { type: "error", error: { type: errorTypeOf(code), message: withPromptLimit(message, code) } },
    "error",
  );
}

function errorTypeOf(code: string): string {
  if (errorTypes.has(code)) return code;
  if (code.includes("overloaded")) return "overloaded_error";
  return errorKinds[kindOfCode(code) ?? "internal"].anthropic;
}

/** Clients know only these error types, and handle some of them. */
const errorTypes = new Set(
  "invalid_request_error authentication_error billing_error permission_error not_found_error request_too_large rate_limit_error timeout_error overloaded_error api_error".split(
    " ",
  ),
);

/** The code by which Claude Code knows that it has to send the whole conversation (2.1.269, 2026-09). */
export const threadCode = "thread_unsupported_request";

/** The body of an error response. */
export function encodeError(error: ProxyError, requestId: string): JsonObject {
  // Anthropic uses this status for overload; clients react by changing the model.
  const type = error.status === 529 ? "overloaded_error" : errorKinds[error.kind].anthropic;
  const { code } = error.details;
  return {
    type: "error",
    error: {
      type,
      message: withPromptLimit(error.message, code),
      ...(code === threadCode ? { details: { error_code: code } } : {}),
    },
    request_id: requestId,
  };
}

/** Rewrites other providers' errors about a long prompt as Anthropic's, which make clients compact the conversation. */
function withPromptLimit(message: string, code: string | undefined): string {
  for (const pattern of tooLong) {
    const { tokens, limit } = pattern.exec(message.slice(0, 2000))?.groups ?? {};
    if (tokens !== undefined) return `prompt is too long: ${tokens} tokens > ${limit} maximum`;
  }
  const isTooLong = code === "context_length_exceeded" || contextWords.test(message);
  return !isTooLong || /prompt is too long/i.test(message) ? message : `prompt is too long: ${message}`;
}

const tooLong = [
  /prompt token count of (?<tokens>\d+) exceeds the limit of (?<limit>\d+)/,
  /maximum context length is (?<limit>\d+) tokens.*?(?:resulted in|requested) (?<tokens>\d+) tokens/s,
];
