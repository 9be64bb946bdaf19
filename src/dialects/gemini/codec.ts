/** The gemini dialect: Google's Gemini API, for clients only. Copilot serves Gemini's models in the chat dialect. */
import type { ClientCodec } from "../codec";
import { encodeError } from "./errors";
import { longTexts } from "./long-texts";
import { overview, promptHead } from "./overview";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest } from "./request";
import { streamType } from "./stream-form";

export const gemini: ClientCodec = {
  longTexts,
  checkRequest,
  overview,
  promptHead,
  decodeRequest,
  encodeReply,
  encodeStream,
  joinsTexts: true,
  streamType,
  encodeError,
};
