/**
 * Which account a conversation should go to first. Thinking signatures, encrypted reasoning and summaries may be readable with the
 * account that received them only, so a conversation that sends them back prefers that account; the newest one decides.
 */
import type { Account } from "../accounts/account";
import type { Scope } from "../app";
import type { Awaitable } from "../awaitable";
import type { Exchange } from "./exchange";
import type { Outgoing } from "./upstream-call";

export type Affinity = Pick<Outgoing, "preferredAccount" | "session">;

/** The client's session, whose requests prefer one account, if the owner wants that. */
export const sharedSession = ({ config }: Scope, { session }: Exchange): string | undefined =>
  config.current.accountAffinity ? session : undefined;

/** Of one account there is nothing to prefer. @param session As {@link sharedSession}. */
export const preferredAccountOf = (
  { accounts, affinity }: Scope,
  exchange: Exchange,
  session: string | undefined,
): Awaitable<Account | undefined> =>
  accounts.length < 2 ? undefined : affinity.accountFor(keysOf(exchange, session), accounts);

function* keysOf(exchange: Exchange, session: string | undefined): Generator<string> {
  for (const { parts } of exchange.conversation()?.turns.toReversed() ?? [])
    for (const part of parts.toReversed())
      if ((part.kind === "thinking" || part.kind === "foreign") && part.signature) yield part.signature.value;
  if (session !== undefined) yield session;
}
