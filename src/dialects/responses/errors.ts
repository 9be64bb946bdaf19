/** Upstream errors of the responses dialect. */
import { isObject } from "../../json";
import { invalidEventCode } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import type { ReplyFailure } from "../hub/reply";

/** The error for an event that cannot be read. */
export const invalidEvent = {
  code: invalidEventCode,
  message: "The upstream's stream contains data that is not a response event.",
} as const;

/** The error for a body that is not a reply. */
export const invalidReply = {
  code: "upstream_bad_reply",
  message: "The upstream's answer is not a response.",
} as const;

/** The error for an upstream error without a message. */
export const gaveUp = {
  code: "upstream_error",
  message: "The upstream ended its reply with an error that has no message.",
} as const;

/** The upstream's error: flat, nested, or without a type. */
export function errorIn(event: JsonObject): ReplyFailure | undefined {
  const error = isObject(event.error) ? event.error : event.type === "error" ? event : undefined;
  return error && { code: textIn(error.code) || gaveUp.code, message: textIn(error.message) || gaveUp.message };
}
