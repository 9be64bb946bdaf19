/** What is said of accounts and budgets one by one, and where it ends: a team may have thousands. */
import type { Account } from "../../people/accounts/account";
import { accountStates, countStates } from "../../people/accounts/account-state";
import { isCounted } from "../../people/accounts/quota";
import type { BudgetState } from "../../people/budgets/entries";
import type { Members } from "../../people/keys/members";
import { maxSeries, type Point } from "./series";

export interface AccountSources {
  /** Those of the whole team. */
  readonly allAccounts: readonly Account[];
  readonly members?: Pick<Members, "find">;
}

/** Accounts with series of their own. */
export const maxNamedAccounts = maxSeries / accountStates.length;

export function statePoints(sources: AccountSources): Point<number>[] {
  return namedAccounts(sources.allAccounts).flatMap((account) => {
    const { name } = account.state;
    const labels = labelsOf(account, sources);
    return accountStates.map((state) => ({ labels: { ...labels, state }, value: name === state ? 1 : 0 }));
  });
}

export function quotaPoints(sources: AccountSources): Point<number>[] {
  return namedAccounts(sources.allAccounts).flatMap((account) => {
    const { knownQuota: quota } = account;
    if (!quota || !isCounted(quota) || !quota.entitlement || quota.remaining === null) return [];
    return [
      { labels: { ...labelsOf(account, sources), unit: quota.unit }, value: quota.remaining / quota.entitlement },
    ];
  });
}

/** How many accounts are in each state. */
export const countPoints = ({ allAccounts }: AccountSources): Point<number>[] =>
  Object.entries(countStates(allAccounts)).map(([state, value]) => ({ labels: { state }, value }));

/** The budgets of which most is used, if there are more than a metric may have. */
export function budgetPoints(states: readonly BudgetState[]): Point<number>[] {
  const points = states.map(({ budget, used }) => ({
    labels: { budget: budget.name, per: budget.per },
    value: used / budget.limit,
  }));
  if (points.length <= maxSeries) return points;
  return points.sort((one, other) => other.value - one.value).slice(0, maxSeries);
}

/** The owner's accounts have no member. */
const labelsOf = ({ key: account, member }: Account, { members }: AccountSources): Record<string, string> =>
  member === null ? { account } : { account, member: members?.find(member)?.name ?? removed };

/** The member was removed a moment ago. */
const removed = "(removed)";

/** If there are too many: the owner's, then those in which something is wrong. */
function namedAccounts(all: readonly Account[]): readonly Account[] {
  if (all.length <= maxNamedAccounts) return all;
  const ranked = all.map((account) => ({ account, rank: account.member === null ? -1 : rankOf[account.state.name] }));
  ranked.sort((one, other) => one.rank - other.rank || (one.account.key < other.account.key ? -1 : 1));
  return ranked.slice(0, maxNamedAccounts).map(({ account }) => account);
}

const rankOf = { failed: 0, exhausted: 1, cooling: 2, paused: 3, ready: 4 };
