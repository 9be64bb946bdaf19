/** Counts what a copy would move, and finds what its target has that the source does not have. Changes nothing. */
import { accountKeyOf } from "../accounts/account-store";
import type { UsedPeriod } from "../budgets/entries";
import type { History } from "../history/history";
import type { Stores } from "../stores";

export interface CopyPlan {
  /** The counts of the source. */
  accounts: number;
  periods: number;
  requests: number;
  /** Names of members who are left out, with their keys, accounts and requests. */
  leftOut: string[];
  /** Names of budgets for members, which count nothing in the target. */
  idleBudgets: string[];
  /** What only the target has, in words; nothing if it is empty, or holds a part of the source from an interrupted copy. */
  others: string[];
}

/** @param to Undefined where there is nothing yet. @throws ProxyError if one of the stores cannot be read. */
export async function planCopy(
  from: Stores,
  to: Stores | undefined,
  warn: (sentence: string) => void,
): Promise<CopyPlan> {
  const ledger = from.openLedger({ now: Date.now, warn });
  const periods = (await ledger.periods()).filter(copiedPeriods(from, to)).length;
  ledger.close();
  const source = openWholeHistory(from, warn);
  try {
    return {
      accounts: from.accounts.load().filter(copiedMembers(from, to)).length,
      periods,
      // With members left out, only the owner's requests count.
      requests: isOnePersons(from, to) ? (await source.totals({ member: null })).request_count : await source.count(),
      leftOut: leftOutMembers(from, to),
      idleBudgets: await budgetsLeftIdle(from, to),
      others: to ? await othersIn(from, source, to, warn) : [],
    };
  } finally {
    source.close();
  }
}

/** A data folder is one person's, so it takes what is the owner's of a database with members. */
const isOnePersons = (from: Stores, to: Stores | undefined): boolean =>
  from.members !== undefined && to !== undefined && to.members === undefined;

/** @returns Whether an account or a row of the history is copied. */
export const copiedMembers =
  (from: Stores, to: Stores | undefined) =>
  ({ member }: { member?: string | null }): boolean =>
    !isOnePersons(from, to) || (member ?? null) === null;

/** @returns Whether what a budget counted is copied: not what a member used. */
export function copiedPeriods(from: Stores, to: Stores | undefined): (period: UsedPeriod) => boolean {
  if (!isOnePersons(from, to)) return () => true;
  const ofMembers = new Set(
    from.accounts
      .load()
      .filter(({ member }) => member)
      .map(accountKeyOf),
  );
  return ({ key: { kind, member, item } }) => member === "" && !(kind === "account" && ofMembers.has(item));
}

/** Names of the budgets that count only requests of members, where the target has none. */
export async function budgetsLeftIdle(from: Stores, to: Stores | undefined): Promise<string[]> {
  if (!isOnePersons(from, to)) return [];
  await from.config.reload();
  const { budgets } = from.config.current;
  const idle = budgets.filter(({ each, scope }) => each === "member" || scope.member !== undefined);
  return idle.map(({ name }) => name);
}

export const leftOutMembers = (from: Stores, to: Stores | undefined): string[] =>
  isOnePersons(from, to) ? from.members!.list().map(({ name }) => name) : [];

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
