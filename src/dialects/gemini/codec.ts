/** The gemini dialect: Google's Gemini API, for clients only. Copilot serves Gemini's models in the chat dialect. */
import type { ClientCodec } from "../codec";
import { encodeError } from "./errors";
import { outline } from "./outline";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest } from "./request";

export const gemini: ClientCodec = {
  facts: {
    // Signatures survive in messages.
    upstreams: ["messages", "responses", "chat"],
    streamBytesPerToken: 200,
    // Gemini CLI retries 429, 499 and 5xx, and takes 404 for an unknown model; 400 is Google's status for
    // FAILED_PRECONDITION too.
    shownAtOnce: 400,
    hiddenStatuses: new Set([404]),
    joinsTexts: true,
  },
  checkRequest,
  outline,
  decodeRequest,
  encodeReply,
  encodeStream,
  encodeError,
};
