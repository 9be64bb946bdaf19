/** The responses dialect, in the contract's words. */
import { kinds } from "../../errors";
import type { Codec } from "../codec";
import { asked, mendReply, mendRequest, mendStream } from "./mend";
import { decodeReply, decodeStream, encodeReply, encodeStream } from "./reply";
import { decodeRequest, encodeRequest } from "./request";
import { repairForeignItems } from "./rules";

export const responses: Codec = {
  decodeRequest,
  encodeRequest,
  repairRequest: repairForeignItems,
  asked,
  mendRequest,
  decodeReply,
  encodeReply,
  mendReply,
  decodeStream,
  encodeStream,
  mendStream,
  encodeError: ({ kind, message, details }) => ({
    error: { message, type: kinds[kind].openai, param: details.param ?? null, code: details.code ?? null },
  }),
};
