/** Whether a person or the client itself made the request. The upstream bills some plans by it; the history shows it. */

import type { RequestKind } from "../../books/history/entry";
import type { Overview } from "../../dialects/overview";
import { beginningOfLong, type LongText, type ReadText, readUnmarked } from "../../lib/net/json/json-skeleton";

export interface Initiator {
  initiator: "user" | "agent";
  /** Why, for the history. */
  reason: string;
  /** What the request is for, where the client or its words tell it. */
  kind?: RequestKind;
}

/**
 * A turn that a person wrote is `user`. Requests of subagents, tool results and messages that the client generated are
 * `agent`. When in doubt it is `user`.
 *
 * opencode's request for a title stays `user`: it differs from a person's turn only in its text, "Generate a title for
 * this conversation:", which a person can write as well. `dragoman connect` gives it a model that costs no quota.
 *
 * @param said What the client says that the request is for. `main` tells nothing: tool results are `main` too.
 */
export function initiatorOf(
  { last, since, isForcedTool }: Overview,
  said?: RequestKind,
  whole = readUnmarked,
): Initiator {
  if (isForcedTool && since.texts.some((text) => toolRequest.test(beginningOfLong(text))))
    return { ...agent("a tool of the client's own"), kind: "search" };
  if (said !== undefined && said !== "main") return agent(saidReasons[said]);
  if (last === "nobody") return user("there is no turn");
  if (last === "model") return user("the last turn is the model's own");
  const texts: string[] = [];
  for (const text of since.texts) {
    const words = wordsOf(text, whole);
    if (words !== undefined) texts.push(words);
  }
  const { results } = since;
  if (texts.length === 0 && !since.media && since.texts.length > 0)
    return agent(results ? "tool results, and the client's own texts beside them" : "the client's own texts alone");
  if (!results) return user("a person's turn");
  if (texts.every((text) => mediaOfResults.has(text.trim())) && (texts.length > 0 || !since.media))
    return agent(texts.length > 0 ? "tool results, with what they show" : "tool results");
  return user("a person's words beside tool results");
}

const user = (reason: string): Initiator => ({ initiator: "user", reason });
const agent = (reason: string): Initiator => ({ initiator: "agent", reason });

const saidReasons: Record<Exclude<RequestKind, "main">, string> = {
  subagent: "a subagent's request",
  check: "the client's auto mode checks a tool call",
  title: "the client names the session",
  compaction: "the client summarizes the conversation",
  auxiliary: "the client's own request beside the conversation",
  search: "a search",
};

/** What Claude Code's WebSearch writes into its own request. The words alone could be a person's. */
const toolRequest = /^Perform a web search for the query: /;

/** Elements in which Claude Code and Codex put their own text into user messages. */
const elements = ["system-reminder", "subagent_notification", "environment_context"];

/** What Claude Code writes beside a tool that it has loaded. */
const toolLoaded = /^Tool loaded\.(?:\n\[id:[^\]\n]+\])*$/;

/** Claude Code's markers: `[SYSTEM NOTIFICATION - NOT USER INPUT]` and the like. */
const notUserInput = /^\[[A-Z -]{1,80} - NOT USER INPUT\]/;

/** What opencode and pi write above the images and files of tool results, where the dialect's tool results cannot hold them. */
const mediaOfResults = new Set(["Attached media from tool result:", "Attached image(s) from tool result:"]);

/** How all of these begin: no other text has to be read to its end. */
const ownBeginning = /^\s*(?:<|\[|Tool loaded\.|Attached )/;

/** A text, as far as it is looked at; undefined where no word of it is a person's. */
function wordsOf(text: LongText, whole: ReadText): string | undefined {
  const beginning = beginningOfLong(text);
  if (!ownBeginning.test(beginning)) return /\S/.test(beginning) ? beginning : undefined;
  const read = whole(text);
  return isClientsOwn(read) ? undefined : read;
}

/** Whether a text of a user's turn has no word of a person. */
export function isClientsOwn(text: string): boolean {
  const left = withoutElements(text).trim();
  return left === "" || toolLoaded.test(left) || notUserInput.test(left);
}

const elementAt = (text: string) => elements.find((element) => text.startsWith(`<${element}>`));

/** The text without the elements it begins with, of which there may be several. */
function withoutElements(text: string): string {
  let left = text.trimStart();
  for (;;) {
    const name = elementAt(left);
    if (name === undefined) return left;
    const end = left.indexOf(`</${name}>`);
    if (end === -1) return left;
    left = left.slice(end + name.length + 3).trimStart();
  }
}
