/** The responses dialect: OpenAI's Responses API, as Copilot serves it. */
import { isObject, numberIn } from "../../json";
import type { Codec } from "../codec";
import { repliesOf } from "../hub/upstream-stream";
import { encodeError, sessionOf } from "../openai";
import { CollectedResponse } from "./collect";
import { compactionReply, isNotMade, summaryReply, summaryRequest, trigger } from "./compaction";
import { fixFull, PassedResponse } from "./fixups";
import { knownNames } from "./known-names";
import { ResponsesNormalizer } from "./normalize";
import { outline } from "./outline";
import { references } from "./references";
import { decodeReply, ItemReader } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest, isWarmUp } from "./request";
import { fixRequest, repairForeignItems } from "./rules";
import { schemas } from "./schemas";
import { offersServerTools } from "./tool-search";

export const responses: Codec = {
  facts: {
    // Messages before chat: signatures survive there.
    upstreams: ["responses", "messages", "chat"],
    streamBytesPerToken: 250,
    // Codex shows the message at once only with 400; with 403, 404 and 424 it retries six times.
    shownAtOnce: 400,
    hiddenStatuses: new Set([403, 404]),
  },
  checkRequest,
  isWarmUp,
  compaction: { trigger, reply: compactionReply, isNotMade, inWords: { request: summaryRequest, reply: summaryReply } },
  outline,
  decodeRequest,
  encodeRequest,
  repairRequest: repairForeignItems,
  schemas,
  session: sessionOf,
  // Codex 0.169: a turn of a subagent has the root turn's id too (seen from the client itself, 2026-11).
  promptId: ({ client_metadata: of }) => (isObject(of) ? (of.root_turn_id ?? of.turn_id) : undefined),
  references,
  offersServerTools,
  knownNames,
  fixRequest,
  maxTokens: ({ max_output_tokens }) => numberIn(max_output_tokens),
  decodeReply,
  encodeReply,
  ...repliesOf({
    Normalizer: ResponsesNormalizer,
    Reader: ItemReader,
    Passed: PassedResponse,
    Collected: CollectedResponse,
    fixFull,
  }),
  encodeStream,
  encodeError,
};
