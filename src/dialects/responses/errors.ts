/** Upstream errors of the responses dialect. */
import { isObject } from "../../lib/json";
import { failureIn, invalidEventOf, invalidReplyOf } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import type { ReplyFailure } from "../hub/reply";

export const invalidEvent = invalidEventOf("a response event");
export const invalidReply = invalidReplyOf("a response");

/** The upstream's error: flat, nested, or without a type. */
export function errorIn(event: JsonObject): ReplyFailure | undefined {
  const error = isObject(event.error) ? event.error : event.type === "error" ? event : undefined;
  return error && failureIn(error);
}
