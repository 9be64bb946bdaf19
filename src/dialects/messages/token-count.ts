/** `count_tokens`: a request without an answer. */
import type { TokenCountFormat } from "../codec";
import { filledAt, without } from "../hub/json";
import { decodeRequest } from "./request";

export const tokenCount: TokenCountFormat = {
  decode(body) {
    filledAt(body.messages, "messages");
    // What is to be made of the conversation does not change its length.
    return decodeRequest(without(body, ["compaction"]));
  },
  encode: (tokens) => ({ input_tokens: tokens }),
};
