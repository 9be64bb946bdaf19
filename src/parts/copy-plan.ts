/** Counts what a copy would move, and finds what its target has that the source does not have. Changes nothing. */

import type { History } from "../books/history/history";
import type { Stores } from "../books/stores";
import { accountKeyOf } from "../people/accounts/account-store";
import type { LocalStores } from "./local-stores";

export interface CopyPlan {
  /** The counts of the source. */
  members: number;
  accounts: number;
  periods: number;
  requests: number;
  /** What only the target has, in words; nothing if it is empty, or holds a part of the source from an interrupted copy. */
  others: string[];
}

/** @param to Undefined where there is nothing yet. @throws ProxyError if one of the stores cannot be read. */
export async function planCopy(
  from: LocalStores,
  to: Stores | undefined,
  warn: (sentence: string) => void,
): Promise<CopyPlan> {
  const ledger = from.openLedger({ now: Date.now, warn });
  const periods = ledger.periods().length;
  ledger.close();
  await from.members.hearAll();
  from.members.requireHeard();
  const source = openWholeHistory(from, warn);
  try {
    return {
      members: from.members.list().length,
      accounts: from.accounts.load().length,
      periods,
      requests: await source.count(),
      others: to ? await othersIn(from, source, to, warn) : [],
    };
  } finally {
    source.close();
  }
}

/** Nothing is removed meanwhile: how much is kept is the config's decision, which the next server follows. */
export const openWholeHistory = (stores: Stores, warn: (sentence: string) => void): History =>
  stores.openHistory({ retentionDays: () => 36_500, maxRows: () => Number.MAX_SAFE_INTEGER, warn });

async function othersIn(
  from: Stores,
  source: History,
  to: Stores,
  warn: (sentence: string) => void,
): Promise<string[]> {
  const others: string[] = [];
  for (const { config } of [from, to]) await config.reload();
  const [ours, theirs] = [from.config.stored, to.config.stored];
  if (Object.keys(theirs).length > 0 && !Bun.deepEquals(ours, theirs)) others.push("another config");
  const known = new Set(from.accounts.load().map(accountKeyOf));
  for (const account of to.accounts.load())
    if (!known.has(accountKeyOf(account))) others.push(`the account ${accountKeyOf(account)}`);
  await to.members?.hearAll();
  to.members?.requireHeard();
  for (const { id, name } of to.members?.list() ?? []) if (!from.members?.find(id)) others.push(`the member ${name}`);
  const target = openWholeHistory(to, warn);
  try {
    // Rows are copied in their order, so the newest one of the target shows whether anything else has written there.
    const [newest] = (await target.list({}, 1)).items;
    if (newest && !(await source.get(newest.request_id))) others.push("requests of its own");
  } finally {
    target.close();
  }
  return others;
}
