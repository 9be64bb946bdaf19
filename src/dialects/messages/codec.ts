/** The messages dialect: Anthropic's Messages API. */
import type { Codec } from "../codec";
import { repliesOf } from "../hub/upstream-stream";
import { requestHeaders } from "./betas";
import { CollectedMessage } from "./collect";
import { encodeError } from "./errors";
import { endIn, fixFull, fixRequest, PassedMessage, replyContext } from "./fixups";
import { knownNames } from "./known-names";
import { longTexts } from "./long-texts";
import { MessagesNormalizer } from "./normalize";
import { overview, promptHead } from "./overview";
import { decodeReply, StreamReader } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest, session } from "./request";
import { forgetThinking, repairTools } from "./rules";
import { hasOwnResults, hasServerCalls, offersServerTools } from "./server-tools";

export const messages: Codec = {
  facts: {
    upstreams: ["messages", "responses", "chat"],
    streamBytesPerToken: 40,
    // Claude Code retries 400 six times with a smaller request; with 403 it blames the sign-in, with 404 the model.
    shownAtOnce: 424,
    hiddenStatuses: new Set([404]),
    startsWithUsage: true,
  },
  longTexts,
  checkRequest,
  overview,
  promptHead,
  decodeRequest,
  encodeRequest,
  requestHeaders,
  // Thinking may be bound to the account that produced it.
  repairRequest: forgetThinking,
  repairTools,
  session,
  offersServerTools,
  hasServerCalls,
  hasOwnResults,
  replyContext,
  knownNames,
  fixRequest,
  decodeReply,
  encodeReply,
  ...repliesOf({
    Normalizer: MessagesNormalizer,
    Reader: StreamReader,
    Passed: PassedMessage,
    Collected: CollectedMessage,
    fixFull,
  }),
  encodeStream,
  endIn,
  encodeError,
};
