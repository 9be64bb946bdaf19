/**
 * Everything that dragoman makes and that a client may send back. None of it goes to an upstream, but for ids of calls: a
 * call and its result need one, and no API looks into it. `test/proxy/relay/sent-back.test.ts` sends back each kind, from every
 * client to every upstream, and knows no kind that is not listed here.
 */

import { isSealed } from "../../dialects/hub/seal";
import { isPacked } from "../../dialects/hub/signature";
import { isOwnId } from "../../dialects/responses/ids";

const isOwnCompaction = (content: string): boolean =>
  isSealed(content, "summary.") || isSealed(content, "compactions.");

interface OwnMark {
  name: string;
  /** Where clients find it and send it back. */
  members: string;
  /** How it is known, by the name and the value of a member. */
  is(key: string, value: string): boolean;
  /** The file that reads it again. */
  reader: string;
  sentBack: string;
  /** Made by somebody else, by an earlier release, or with another account. */
  foreign: string;
  /** It is in the upstream's requests, too. */
  goesUp?: true;
}

export const marksSentBack: readonly OwnMark[] = [
  {
    name: "signed thinking of another dialect's model",
    members: "`reasoning_opaque`, `encrypted_content` of reasoning, `signature` and `data` of thinking",
    is: (_, value) => isPacked(value),
    reader: "hub/signature.ts",
    sentBack: "unpacked for the dialect of its maker; left out for others (`dropped`: `thinking`)",
    foreign:
      "taken for a signature of the client's dialect; one of another account goes there, or is removed and the request sent again",
  },
  {
    name: "the same for Google's clients",
    members: "`thoughtSignature`",
    is: (key, value) => key === "thoughtSignature" && isPacked(Buffer.from(value, "base64").toString()),
    reader: "gemini/signature.ts",
    sentBack: "as above",
    foreign: "Google's own is left out: no upstream here can read it",
  },
  {
    name: "a found page's words",
    members: "`encrypted_content` of a `web_search_result`",
    is: (key, value) => key === "encrypted_content" && isSealed(value) && !isPacked(value) && !isOwnCompaction(value),
    reader: "messages/server-tools.ts",
    sentBack:
      "the result of a function's call, in words; not even a provider with a search of its own gets it as it is",
    foreign: "the page without its words; a provider gets its own back",
  },
  {
    name: "a citation's index",
    members: "`encrypted_index` of a citation",
    is: (key, value) => key === "encrypted_index" && isSealed(value),
    reader: "messages/citations.ts",
    sentBack: "the citation is left out",
    foreign: "left out for GitHub Copilot, where no search has run; a provider gets its own back",
  },
  {
    name: "a summary of the conversation",
    members: "`encrypted_content` of a compaction",
    is: (_, value) => isOwnCompaction(value),
    reader: "responses/compaction.ts",
    sentBack: "a message with the summary, or the upstream's items",
    foreign: "goes to the Responses API only; refused for models of another one: it stands for the conversation",
  },
  {
    name: "ids of a response and of its items",
    members: "`id`, `previous_response_id`, `item_reference`",
    is: (_, value) => isOwnId(value),
    reader: "responses/rules.ts, responses/references.ts",
    sentBack:
      "removed from items; a reference is replaced by the item that this key was given within the hour, else refused, but for reasoning, which is left out",
    foreign:
      "ids of reasoning go with it to the account that made it; as references refused, unless remembered as reasoning's",
  },
  {
    name: "ids of calls",
    members: "`id`, `call_id`, `tool_use_id`, `tool_call_id`",
    is: (_, value) => /^(?:srvtoolu_\w+|toolu_[0-9a-f]{32}|call_[\w-]*_\d+)$/.test(value),
    reader: "hub/adapt.ts",
    sentBack: "as they are; shortened where an API takes fewer characters, numbered where several calls have the same",
    foreign: "the same",
    goesUp: true,
  },
];
