/** The chat dialect: OpenAI's Chat Completions, as Copilot speaks it. */
import type { Codec } from "../codec";
import { asked, mendReply, mendRequest, mendStream } from "./mend";
import { decodeReply, decodeStream, encodeError, encodeReply, encodeStream } from "./reply";
import { decodeRequest, encodeRequest } from "./request";
import { repairRequest } from "./rules";

export const chat: Codec = {
  decodeRequest,
  encodeRequest,
  repairRequest,
  asked,
  mendRequest,
  decodeReply,
  encodeReply,
  mendReply,
  decodeStream,
  encodeStream,
  mendStream,
  encodeError,
};
