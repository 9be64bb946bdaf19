/** Upstream errors of the responses dialect. */
import { isObject } from "../../lib/json";
import { invalidEventOf, invalidReplyOf, withWords } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import type { ReplyFailure } from "../hub/reply";

export const invalidEvent = invalidEventOf("a response event");
export const invalidReply = invalidReplyOf("a response");

/** The upstream's error: flat, nested, or without a type. */
export function errorIn(event: JsonObject): ReplyFailure | undefined {
  const error = isObject(event.error) ? event.error : event.type === "error" ? event : undefined;
  return error && withWords(textIn(error.code), textIn(error.message));
}
