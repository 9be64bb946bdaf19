/** How replies of the chat dialect fail: what an upstream tells of it, and what a client is told. */
import { isObject } from "../../json";
import { jsonFrame, type SseFrame } from "../../net/sse";
import { invalidEventCode } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import type { ReplyError } from "../hub/reply";

/** What to say of a chunk that cannot be followed. */
export const invalidEvent = {
  code: invalidEventCode,
  message: "The upstream sent something in its stream that is not what a chat completion is made of.",
} as const;

/** What to say of a full reply that is none. */
export const invalidReply = {
  code: "upstream_bad_reply",
  message: "The upstream's answer is not a chat completion.",
} as const;

/** What to say of an error without words. */
export const gaveUp = {
  code: "upstream_error",
  message: "The upstream gave up on its reply without saying why.",
} as const;

/** What an upstream says has gone wrong, in any of its three ways. */
export function errorIn(chunk: JsonObject): Pick<ReplyError, "code" | "message"> | undefined {
  const errors = chunk.copilot_errors;
  const error = chunk.error || (Array.isArray(errors) ? errors[0] : undefined);
  if (!error) return undefined;
  if (typeof error === "string") return { code: "upstream_error", message: error };
  if (!isObject(error)) return gaveUp;
  const code = [error.code, error.type].find((word) => typeof word === "string" && word !== "");
  return {
    code: code === undefined ? "upstream_error" : String(code),
    message: typeof error.message === "string" && error.message !== "" ? error.message : gaveUp.message,
  };
}

/** The error as a frame: clients take a chunk with `error` for one, and a stream without `[DONE]` for incomplete. */
export function errorFrame({ code, message }: Pick<ReplyError, "code" | "message">): SseFrame {
  return jsonFrame({ error: { message, type: "upstream_error", param: null, code } });
}
