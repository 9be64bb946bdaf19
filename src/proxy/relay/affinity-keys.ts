/**
 * Which account a conversation should go to first. Thinking signatures, encrypted reasoning and summaries may be readable with the
 * account that received them only, so a conversation that sends them back prefers that account; the newest one decides.
 */

import { type Awaitable, whenKnown } from "../../lib/awaitable";
import type { Account } from "../../people/accounts/account";
import type { RequestScope } from "../scope";
import { isKnownFor } from "../upstream/models/known-models";
import { conversationMark } from "./conversation-mark";
import type { Exchange } from "./exchange";
import type { Outgoing } from "./upstream-call";

export type Preference = Pick<Outgoing, "preferredAccount" | "marks">;

/** What the requests of a conversation have in common, whatever they replay. */
interface Marks {
  /** Of a conversation that stays with the account that served its last turn. */
  conversation?: string;
  /** The client's session, if the owner wants that its requests prefer one account. */
  session?: string;
}

/**
 * Where the request goes first, and what the account that serves it is remembered by.
 * @param model The id of the one that is to serve.
 */
export function affinityOf(parts: RequestScope, exchange: Exchange, model: string): Awaitable<Preference> {
  return parts.accounts.length < 2 && !parts.config.current.accountAffinity
    ? none
    : affinityAmong(parts, exchange, isKnownFor("boundReasoning", model));
}

function affinityAmong(parts: RequestScope, exchange: Exchange, isBound: boolean): Awaitable<Preference> {
  const marks = marksOf(parts, exchange, isBound);
  const { conversation = [], session = [] } = marks;
  return whenKnown(preferredAccountOf(parts, exchange, marks), (preferredAccount) => ({
    preferredAccount,
    marks: [conversation, session].flat(),
  }));
}

/** Of one account there is nothing to prefer, nor to remember. */
const none: Preference = {};

/** The account that is asked for its choice of a model before others. */
export const preferredForAuto = (parts: RequestScope, exchange: Exchange): Awaitable<Account | undefined> =>
  preferredAccountOf(parts, exchange, marksOf(parts, exchange, true));

function marksOf({ accounts, config }: RequestScope, exchange: Exchange, isBound: boolean): Marks {
  return {
    conversation: isBound && accounts.length > 1 ? conversationMark(exchange) : undefined,
    session: config.current.accountAffinity ? exchange.session : undefined,
  };
}

export const preferredAccountOf = (
  { accounts, affinity }: Pick<RequestScope, "accounts" | "affinity">,
  exchange: Exchange,
  marks: Marks,
): Awaitable<Account | undefined> =>
  accounts.length < 2 ? undefined : affinity.accountFor(keysOf(exchange, marks), accounts);

/** What the last turn replays says more than the conversation's mark, which another one that began in the same way may share. */
function* keysOf(exchange: Exchange, { conversation, session }: Marks): Generator<string> {
  let hasPassedLast = false;
  for (const { role, parts } of exchange.conversation()?.turns.toReversed() ?? []) {
    for (const part of parts.toReversed())
      if ((part.kind === "thinking" || part.kind === "foreign") && part.signature) yield part.signature.value;
    if (hasPassedLast || role !== "assistant") continue;
    hasPassedLast = true;
    if (conversation !== undefined) yield conversation;
  }
  if (session !== undefined) yield session;
}
