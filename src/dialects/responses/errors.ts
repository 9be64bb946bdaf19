/** How replies of the responses dialect fail, as an upstream tells it. */
import { isObject } from "../../json";
import { invalidEventCode } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import type { ReplyError } from "../hub/reply";

/** What to say of an event that cannot be followed. */
export const invalidEvent = {
  code: invalidEventCode,
  message: "The upstream sent something in its stream that is not what a response is made of.",
} as const;

/** What to say of a full reply that is none. */
export const invalidReply = {
  code: "upstream_bad_reply",
  message: "The upstream's answer is not a response.",
} as const;

/** What to say of an error without words. */
export const gaveUp = {
  code: "upstream_error",
  message: "The upstream gave up on its reply without saying why.",
} as const;

/** What an upstream says has gone wrong: flat, one level deeper, or without a type. */
export function errorIn(event: JsonObject): Pick<ReplyError, "code" | "message"> | undefined {
  const error = isObject(event.error) ? event.error : event.type === "error" ? event : undefined;
  return error && { code: textIn(error.code) || gaveUp.code, message: textIn(error.message) || gaveUp.message };
}
