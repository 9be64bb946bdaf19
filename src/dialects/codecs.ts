/** The dialects: three of clients and upstreams, one of clients alone. */
import { chat } from "./chat/codec";
import type { ClientCodec, Codec, TokenCountFormat } from "./codec";
import { gemini } from "./gemini/codec";
import { tokenCount as geminiTokenCount } from "./gemini/token-count";
import type { ClientDialect, Dialect } from "./hub/conversation";
import { messages } from "./messages/codec";
import { tokenCount as messagesTokenCount } from "./messages/token-count";
import { responses } from "./responses/codec";
import { tokenCount as responsesTokenCount } from "./responses/token-count";

export type * from "./codec";

export const codecs: Record<Dialect, Codec> & Record<ClientDialect, ClientCodec> = {
  chat,
  responses,
  messages,
  gemini,
};

export const tokenCountFormats = {
  messages: messagesTokenCount,
  responses: responsesTokenCount,
  gemini: geminiTokenCount,
} satisfies Partial<Record<ClientDialect, TokenCountFormat>>;
