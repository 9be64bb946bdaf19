/** Errors of the chat dialect: those of upstreams, and those written to clients. */
import { errorKinds } from "../../lib/errors";
import { isObject } from "../../lib/json";
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import { failureIn, gaveUp, invalidEventOf, invalidReplyOf } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { kindOfCode } from "../hub/error-codes";
import type { ReplyFailure } from "../hub/reply";

export const invalidEvent = invalidEventOf("a chat completion chunk");
export const invalidReply = invalidReplyOf("a chat completion");

/** The upstream's error, in any of its three forms. */
export function errorIn(chunk: JsonObject): ReplyFailure | undefined {
  const errors = chunk.copilot_errors;
  const error = chunk.error || (Array.isArray(errors) ? errors[0] : undefined);
  if (!error) return undefined;
  if (typeof error === "string") return { code: "upstream_error", message: error };
  return isObject(error) ? failureIn(error) : gaveUp;
}

/** The error as a frame: clients recognize a chunk with `error`, and a stream without `[DONE]` as incomplete. */
export function errorFrame({ code, message }: ReplyFailure): SseFrame {
  return jsonFrame({ error: { message, type: errorKinds[kindOfCode(code) ?? "upstream"].openai, param: null, code } });
}
