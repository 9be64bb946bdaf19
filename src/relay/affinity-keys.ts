/**
 * Which account a conversation should go to first. Thinking signatures and encrypted reasoning may be readable with the
 * account that received them only, so a conversation that sends them back prefers that account; the newest one decides.
 */
import type { App } from "../app";
import type { Outgoing } from "./failover";
import type { ReadConversation } from "./incoming";

/** @param bodySession The session id in the request's body; one in a header takes precedence. */
export function affinityOf(
  { accounts, affinity, config }: Pick<App, "accounts" | "affinity" | "config">,
  { headers, bodySession, conversation }: { headers: Headers; bodySession: unknown; conversation: ReadConversation },
): Pick<Outgoing, "preferredAccount" | "session"> {
  const session = config.current.accountAffinity ? clientSession(headers, bodySession) : undefined;
  return { preferredAccount: affinity.accountFor(keysOf(conversation, session), accounts), session };
}

function* keysOf(conversation: ReadConversation, session: string | undefined): Generator<string> {
  for (const { parts } of conversation()?.turns.toReversed() ?? [])
    for (const part of parts.toReversed()) if (part.kind === "thinking" && part.signature) yield part.signature.value;
  if (session !== undefined) yield session;
}

/** Headers in which clients send their session's id; the first one present is used. */
const sessionHeaders = [
  "x-claude-code-session-id",
  "x-session-affinity",
  "x-session-id",
  "session-id",
  "session_id",
  "x-client-session-id",
];

/** The client's session, if it names one. */
export function clientSession(headers: Headers, bodySession: unknown): string | undefined {
  const session = sessionHeaders.map((name) => headers.get(name)).find(Boolean) ?? bodySession;
  return typeof session === "string" && session !== "" ? `session ${session.slice(0, 256)}` : undefined;
}
