/** The responses dialect: OpenAI's Responses API, as Copilot serves it. */
import type { Codec } from "../codec";
import { freeMembers } from "../hub/alike-parts";
import { repliesOf } from "../hub/upstream-stream";
import { encodeError } from "../openai";
import { CollectedResponse } from "./collect";
import { compactionReply, isNotMade, summaryReply, summaryRequest, trigger } from "./compaction";
import { fixFull, PassedResponse } from "./fixups";
import { knownNames } from "./known-names";
import { ResponsesNormalizer } from "./normalize";
import { outline } from "./outline";
import { ItemReader } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest } from "./request";
import { fixRequest, repairForeignItems } from "./rules";
import { schemas } from "./schemas";

/** Of a text and of a piece of a call the same differs. */
const free = freeMembers({ text: ["delta", "obfuscation"], number: ["sequence_number"], id: ["item_id"] });

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
  compaction: { trigger, reply: compactionReply, isNotMade, inWords: { request: summaryRequest, reply: summaryReply } },
  outline,
  decodeRequest,
  encodeRequest,
  remedies: { repair: repairForeignItems },
  schemas,
  knownNames,
  fixRequest,
  encodeReply,
  ...repliesOf({
    Normalizer: ResponsesNormalizer,
    Reader: ItemReader,
    Passed: PassedResponse,
    free: { text: free, call: free },
    Collected: CollectedResponse,
    fixFull,
  }),
  encodeStream,
  encodeError,
};
