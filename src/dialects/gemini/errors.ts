/** Errors in Google's shape, `google.rpc.Status` (https://google.aip.dev/193). */
import { type ErrorKind, errorKinds, type ProxyError } from "../../lib/errors";
import type { JsonObject } from "../hub/conversation";
import { kindOfCode } from "../hub/error-codes";
import type { ReplyError } from "../hub/reply";

const statuses: Record<ErrorKind, string> = {
  invalid_request: "INVALID_ARGUMENT",
  authentication: "UNAUTHENTICATED",
  permission: "PERMISSION_DENIED",
  not_found: "NOT_FOUND",
  method_not_allowed: "UNIMPLEMENTED",
  conflict: "ABORTED",
  too_large: "INVALID_ARGUMENT",
  unsupported_media: "INVALID_ARGUMENT",
  upgrade_required: "FAILED_PRECONDITION",
  rate_limit: "RESOURCE_EXHAUSTED",
  quota: "RESOURCE_EXHAUSTED",
  internal: "INTERNAL",
  upstream: "UNAVAILABLE",
  no_account: "UNAVAILABLE",
  timeout: "DEADLINE_EXCEEDED",
  loop: "FAILED_PRECONDITION",
  unable: "FAILED_PRECONDITION",
};

/** The body of an error response. */
export function encodeError(error: ProxyError, requestId: string): JsonObject {
  const { kind, message, status } = error;
  const { code, param, headers } = error.details;
  const details: JsonObject[] = [];
  const add = (type: string, members: JsonObject) =>
    details.push({ "@type": `type.googleapis.com/google.rpc.${type}`, ...members });
  if (code !== undefined) add("ErrorInfo", { reason: code.toUpperCase(), domain: "dragoman" });
  if (param !== undefined) add("BadRequest", { fieldViolations: [{ field: param, description: message }] });
  // Gemini CLI waits for it, or shows the error at once if it is longer than five minutes.
  const seconds = Number(headers?.["retry-after"] ?? Number.NaN);
  if (seconds >= 0) add("RetryInfo", { retryDelay: `${seconds}s` });
  if (requestId !== "") add("RequestInfo", { requestId });
  return { error: { code: status, message, status: statuses[kind], details } };
}

/** The last member of a stream that failed. Clients read an error with a status; Gemini CLI sends the request again if it is a 5xx. */
export function streamError({ code, message }: Pick<ReplyError, "code" | "message">): JsonObject {
  const kind = kindOfCode(code) ?? "internal";
  return { error: { code: errorKinds[kind].status, message, status: statuses[kind] } };
}
