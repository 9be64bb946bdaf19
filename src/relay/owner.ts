/**
 * Whose conversation it is. What a model proved with one account (thinking signatures, encrypted reasoning) may be
 * readable with that account only, so a conversation that sends it back goes there first; the newest proof counts.
 */
import type { App } from "../app";
import type { Conversation } from "../dialects/hub/conversation";
import type { Incoming } from "./incoming";
import type { Outgoing } from "./send";

export function ownership(
  app: App,
  headers: Headers,
  incoming: Incoming,
  conversation: Conversation | undefined,
): Pick<Outgoing, "owner" | "session"> {
  const session = app.config.current.accountAffinity ? sessionOf(headers, incoming) : undefined;
  return { owner: app.owners.ownerOf(marksOf(conversation, session), app.accounts), session };
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

function sessionOf(headers: Headers, { body }: Incoming): string | undefined {
  const named = sessionHeaders.map((name) => headers.get(name)).find(Boolean) ?? body.prompt_cache_key;
  return typeof named === "string" && named !== "" ? `session ${named.slice(0, 256)}` : undefined;
}
