/** The messages dialect: Anthropic's Messages API. */
import type { Codec } from "../codec";
import { requestHeaders } from "./betas";
import { collectStream } from "./collect";
import { encodeError } from "./errors";
import { asked, endIn, mendReply, mendRequest, mendStream, repairRequest } from "./mend";
import { overview } from "./overview";
import { decodeReply, decodeStream, encodeReply, encodeStream } from "./reply";
import { checkRequest, decodeRequest, encodeRequest } from "./request";
import { repairTools } from "./rules";

export const messages: Codec = {
  checkRequest,
  overview,
  decodeRequest,
  encodeRequest,
  requestHeaders,
  repairRequest,
  repairTools,
  asked,
  mendRequest,
  decodeReply,
  encodeReply,
  mendReply,
  decodeStream,
  encodeStream,
  mendStream,
  endIn,
  collectStream,
  encodeError,
};
