/** The chat dialect: OpenAI's Chat Completions API, as Copilot serves it. */
import { numberIn } from "../../json";
import type { Codec } from "../codec";
import { objectsAmong } from "../hub/lists";
import { repliesOf } from "../hub/upstream-stream";
import { encodeError, sessionOf } from "../openai";
import { speakerOf } from "../overview";
import { CollectedChat } from "./collect";
import { fixFull, PassedChat, replyContext } from "./fixups";
import { knownNames } from "./known-names";
import { ChatNormalizer } from "./normalize";
import { ChunkReader, decodeReply } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest } from "./request";
import { fixRequest, repairRequest } from "./rules";
import { schemas } from "./schemas";
import { offersServerTools } from "./server-tools";

export const chat: Codec = {
  facts: {
    upstreams: ["chat", "responses", "messages"],
    streamBytesPerToken: 200,
    // opencode shows 400, 403, 404 and 424 at once.
    shownAtOnce: 424,
    hiddenStatuses: new Set(),
    joinsTexts: true,
  },
  checkRequest,
  outline: ({ tools, messages }) => ({
    tools,
    messages: objectsAmong(messages).map(({ role, content }) => ({ by: speakerOf(role), content })),
  }),
  decodeRequest,
  encodeRequest,
  repairRequest,
  schemas,
  session: sessionOf,
  offersServerTools,
  knownNames,
  fixRequest,
  maxTokens: ({ max_completion_tokens, max_tokens }) => numberIn(max_completion_tokens ?? max_tokens),
  decodeReply,
  encodeReply,
  ...repliesOf({
    Normalizer: ChatNormalizer,
    Reader: ChunkReader,
    Passed: PassedChat,
    Collected: CollectedChat,
    fixFull,
  }),
  replyContext,
  encodeStream,
  encodeError,
};
