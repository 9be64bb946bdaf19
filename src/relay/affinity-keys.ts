/**
 * Which account a conversation should go to first. Thinking signatures, encrypted reasoning and summaries may be readable with the
 * account that received them only, so a conversation that sends them back prefers that account; the newest one decides.
 */
import type { App } from "../app";
import { type Awaitable, whenKnown } from "../awaitable";
import type { ReadConversation } from "./incoming";
import { sessionInHeaders } from "./session-id";
import type { Outgoing } from "./upstream-call";

/** @param bodySession The session id in the request's body; one in a header takes precedence. */
export function affinityOf(
  { accounts, affinity, config }: Pick<App, "accounts" | "affinity" | "config">,
  { headers, bodySession, conversation }: { headers: Headers; bodySession: unknown; conversation: ReadConversation },
): Awaitable<Pick<Outgoing, "preferredAccount" | "session">> {
  const session = config.current.accountAffinity ? clientSession(headers, bodySession) : undefined;
  return whenKnown(affinity.accountFor(keysOf(conversation, session), accounts), (preferredAccount) => ({
    preferredAccount,
    session,
  }));
}

function* keysOf(conversation: ReadConversation, session: string | undefined): Generator<string> {
  for (const { parts } of conversation()?.turns.toReversed() ?? [])
    for (const part of parts.toReversed())
      if ((part.kind === "thinking" || part.kind === "foreign") && part.signature) yield part.signature.value;
  if (session !== undefined) yield session;
}

/** The client's session, if it names one. */
export function clientSession(headers: Headers, bodySession: unknown): string | undefined {
  const session = sessionInHeaders(headers) ?? bodySession;
  return typeof session === "string" && session !== "" ? `session ${session.slice(0, 256)}` : undefined;
}
