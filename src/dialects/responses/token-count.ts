/** `POST /v1/responses/input_tokens`: a request without an answer. */
import type { TokenCountFormat } from "../codec";
import { decodeRequest } from "./request";

export const tokenCount: TokenCountFormat = {
  decode: decodeRequest,
  // OpenAI's reference, "Get input token counts" (2026-11).
  encode: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
};
