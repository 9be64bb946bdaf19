/** `countTokens`: contents, or a whole request for an answer. */
import type { TokenCountFormat } from "../codec";
import { fieldsAt } from "./fields";
import { decodeRequest } from "./request";

export const tokenCount: TokenCountFormat = {
  decode(body) {
    const { model, generateContentRequest: whole, ...request } = fieldsAt(body, "body");
    return decodeRequest({ ...(whole == null ? request : fieldsAt(whole, "generateContentRequest")), model });
  },
  encode: (tokens) => ({ totalTokens: tokens }),
};
