/**
 * Whose conversation it is. What a model proved with one account (thinking signatures, encrypted reasoning) may be
 * readable with that account only, so a conversation that sends it back goes there first; the newest proof counts.
 */
import type { App } from "../app";
import type { Conversation } from "../dialects/hub/conversation";
import type { Outgoing } from "./failover";

/** @param named What the client's body calls its session; a header counts before it. */
export function affinityOf(
  app: App,
  headers: Headers,
  named: unknown,
  conversation: Conversation | undefined,
): Pick<Outgoing, "preferredAccount" | "session"> {
  const session = app.config.current.accountAffinity ? sessionOf(headers, named) : undefined;
  return { preferredAccount: app.affinity.accountFor(marksOf(conversation, session), app.accounts), session };
}

function* marksOf(conversation: Conversation | undefined, session: string | undefined): Generator<string> {
  for (const { parts } of conversation?.turns.toReversed() ?? [])
    for (const part of parts.toReversed()) if (part.kind === "thinking" && part.signature) yield part.signature.value;
  if (session !== undefined) yield session;
}

/** What clients call a session by; the first that is there counts. */
const sessionHeaders = [
  "x-claude-code-session-id",
  "x-session-affinity",
  "x-session-id",
  "session-id",
  "session_id",
  "x-client-session-id",
];

function sessionOf(headers: Headers, named: unknown): string | undefined {
  const session = sessionHeaders.map((name) => headers.get(name)).find(Boolean) ?? named;
  return typeof session === "string" && session !== "" ? `session ${session.slice(0, 256)}` : undefined;
}
