/** `count_tokens`: a request without an answer. */
import type { TokenCountFormat } from "../codec";
import { filledAt } from "../hub/json";
import { decodeRequest } from "./request";

export const tokenCount: TokenCountFormat = {
  decode(body) {
    filledAt(body.messages, "messages");
    return decodeRequest(body);
  },
  encode: (tokens) => ({ input_tokens: tokens }),
};
