/**
 * Which account a conversation should go to first. Thinking signatures, encrypted reasoning and summaries may be readable with the
 * account that received them only, so a conversation that sends them back prefers that account; the newest one decides.
 */
import type { Scope } from "../app";
import { type Awaitable, whenKnown } from "../awaitable";
import type { Exchange } from "./exchange";
import type { Outgoing } from "./upstream-call";

export type Affinity = Pick<Outgoing, "preferredAccount" | "session">;

export function affinityOf({ accounts, affinity, config }: Scope, exchange: Exchange): Awaitable<Affinity> {
  const session = config.current.accountAffinity ? exchange.session : undefined;
  const preferred = affinity.accountFor(keysOf(exchange, session), accounts);
  return whenKnown(preferred, (preferredAccount) => ({ preferredAccount, session }));
}

function* keysOf(exchange: Exchange, session: string | undefined): Generator<string> {
  for (const { parts } of exchange.conversation()?.turns.toReversed() ?? [])
    for (const part of parts.toReversed())
      if ((part.kind === "thinking" || part.kind === "foreign") && part.signature) yield part.signature.value;
  if (session !== undefined) yield session;
}
