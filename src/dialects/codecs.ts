/** The three dialects. */
import { chat } from "./chat/codec";
import type { Codec } from "./codec";
import type { Dialect } from "./hub/conversation";
import { messages } from "./messages/codec";
import { responses } from "./responses/codec";

export type * from "./codec";

export const codecs: Record<Dialect, Codec> = { chat, responses, messages };
