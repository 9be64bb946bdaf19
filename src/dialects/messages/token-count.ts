/** `count_tokens`: a request without an answer. */
import type { TokenCountFormat } from "../codec";
import { decodeRequest } from "./request";

export const tokenCount: TokenCountFormat = {
  decode: decodeRequest,
  encode: (tokens) => ({ input_tokens: tokens }),
};
