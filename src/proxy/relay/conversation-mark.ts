/** Tells conversations apart. */

import type { Turn } from "../../dialects/hub/conversation";
import { type ReadText, readUnmarked } from "../../lib/net/json/json-skeleton";
import { markHash } from "../../people/accounts/affinity";
import type { Exchange } from "./exchange";
import { isClientsOwn } from "./initiator";

/**
 * A hash of the client's session, which subagents share, and the first words of the person, which a compaction replaces.
 * The same on each server. Undefined for a request that has neither.
 */
export function conversationMark(exchange: Exchange): string | undefined {
  const { session, key, running, whole } = exchange;
  const turns = exchange.conversation()?.turns;
  const first = turns?.map((turn) => wordsOf(turn, whole)).find((words) => words !== "");
  if (first === undefined && session === undefined) return undefined;
  return `conversation ${markHash(JSON.stringify([running.member, key?.name ?? null, session ?? null, first ?? null]))}`;
}

/** What a person wrote in a turn, without what the client added. */
export const wordsOf = ({ role, parts }: Turn, whole: ReadText = readUnmarked): string =>
  role !== "user"
    ? ""
    : parts
        .flatMap((part) => (part.kind === "text" ? [whole(part.text)] : []))
        .filter((text) => !isClientsOwn(text))
        .join("\n")
        .trim();
