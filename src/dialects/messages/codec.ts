/** The messages dialect: Anthropic's Messages API. */
import { isObject, numberIn } from "../../lib/json";
import type { Codec } from "../codec";
import { freeMembers } from "../hub/alike-parts";
import type { JsonObject } from "../hub/conversation";
import { repliesOf } from "../hub/upstream-stream";
import { type Outline, speakerOf } from "../overview";
import { auxiliaryKind } from "./auxiliary-kind";
import { requestHeaders } from "./betas";
import { CollectedMessage } from "./collect";
import { encodeError } from "./errors";
import { endIn, fixFull, PassedMessage } from "./fixups";
import { knownNames } from "./known-names";
import { withFreeChoice } from "./limits";
import { MessagesNormalizer } from "./normalize";
import { StreamReader } from "./reply-reader";
import { encodeReply, encodeStream } from "./reply-writer";
import { checkRequest, decodeRequest, encodeRequest, session } from "./request";
import { fixRequest, foldSystem, forgetThinking } from "./rules";
import { schemas } from "./schemas";
import { hasOwnResults, hasServerCalls, offersServerTools } from "./server-tools";
import { objectsIn, withoutBilling } from "./traverse";

export const messages: Codec = {
  facts: {
    upstreams: ["messages", "responses", "chat"],
    streamBytesPerToken: 40,
    // Claude Code retries 400 six times with a smaller request; with 403 it blames the sign-in, with 404 the model.
    shownAtOnce: 424,
    hiddenStatuses: new Set([404]),
    startsWithUsage: true,
  },
  checkRequest,
  outline,
  decodeRequest,
  encodeRequest,
  requestHeaders,
  // Thinking may be bound to the account that produced it.
  remedies: { repair: forgetThinking, freeChoice: withFreeChoice, foldSystem },
  schemas,
  knownNames,
  fixRequest,
  encodeReply,
  ...repliesOf({
    Normalizer: MessagesNormalizer,
    Reader: StreamReader,
    Passed: PassedMessage,
    free: { text: freeMembers({ text: ["text", "thinking"] }), call: freeMembers({ text: ["partial_json"] }) },
    Collected: CollectedMessage,
    fixFull,
  }),
  encodeStream,
  endIn,
  encodeError,
};

function outline(body: JsonObject): Outline {
  const { tools, system, messages, max_tokens, tool_choice: choice } = body;
  const [tool, ...others] = objectsIn(tools);
  const isServers = tool !== undefined && others.length === 0 && tool.type != null && tool.type !== "custom";
  return {
    tools,
    system: () => withoutBilling(system),
    messages: objectsIn(messages).map((item) => ({ by: speakerOf(item.role), content: item.content, item })),
    isForcedTool: isServers && isObject(choice) && choice.type === "tool" && choice.name === tool.name,
    session: session(body),
    auxiliaryKind: () => auxiliaryKind(body),
    maxTokens: numberIn(max_tokens),
    offersServerTools: (model) => offersServerTools(body, model),
    hasServerCalls: () => hasServerCalls(body),
    hasOwnResults: () => hasOwnResults(body),
  };
}
