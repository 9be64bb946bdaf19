/** `countTokens`: contents, or a whole request for an answer. */
import type { TokenCountFormat } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { fieldsAt } from "./fields";
import { decodeRequest, filledContents } from "./request";

export const tokenCount: TokenCountFormat = {
  decode(body) {
    const { model, generateContentRequest: whole, ...request } = fieldsAt(body, "body");
    const counted: JsonObject = whole == null ? request : fieldsAt(whole, "generateContentRequest");
    filledContents(counted.contents);
    return decodeRequest({ ...counted, model });
  },
  encode: (tokens) => ({ totalTokens: tokens }),
};
