/** The chat dialect: OpenAI's Chat Completions API, as Copilot serves it. */
import { numberIn } from "../../lib/json";
import type { Codec } from "../codec";
import { freeMembers } from "../hub/alike-parts";
import { objectsAmong } from "../hub/lists";
import { repliesOf } from "../hub/upstream-stream";
import { encodeError, sessionOf } from "../openai";
import { speakerOf } from "../overview";
import { CollectedChat } from "./collect";
import { contextOf, fixFull, PassedChat } from "./fixups";
import { knownNames } from "./known-names";
import { ChatNormalizer } from "./normalize";
import { ChunkReader } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest } from "./request";
import { fixRequest, repairRequest } from "./rules";
import { schemas } from "./schemas";
import { offersServerTools } from "./server-tools";
import { textFields } from "./thinking";

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
  outline: (body) => ({
    tools: body.tools,
    messages: objectsAmong(body.messages).map((item) => ({ by: speakerOf(item.role), content: item.content, item })),
    session: sessionOf(body),
    maxTokens: numberIn(body.max_completion_tokens ?? body.max_tokens),
    offersServerTools: () => offersServerTools(body),
  }),
  decodeRequest,
  encodeRequest,
  remedies: { repair: repairRequest },
  schemas,
  knownNames,
  fixRequest,
  encodeReply,
  ...repliesOf({
    Normalizer: ChatNormalizer,
    Reader: ChunkReader,
    Passed: PassedChat,
    free: {
      text: freeMembers({
        text: ["id", ...textFields],
        number: ["created", "check_offset", "start_offset", "end_offset"],
      }),
      // With another id it would be another call.
      call: freeMembers({ text: ["arguments", "input"], number: ["created"] }),
    },
    Collected: CollectedChat,
    contextOf,
    fixFull,
  }),
  encodeStream,
  encodeError,
};
