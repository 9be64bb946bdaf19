/** The budgets that apply to a request: those of the config, and those of the config's client keys. */

import { type Budget, keyBudgetName } from "../../config/budget-schema";
import type { Config } from "../../config/schema";
import type { Account } from "../accounts/account";
import { type ClientKey, matchesPattern } from "../keys/client-keys";
import type { Member } from "../keys/members";

export type { Budget };

/** What a budget's scope is compared with; null and undefined match no pattern. */
export interface Subject {
  /** Whose request it is; missing or null for the owner's. */
  member?: Pick<Member, "id" | "name"> | null;
  /** The account's login. */
  account: string | null;
  /** `<host>/<login>`; on github.com by default. */
  accountKey?: string;
  /** The name of the client key. */
  key: string | null;
  /** The model's id. */
  model: string;
  /** Another provider's model, which GitHub does not charge. */
  isProvided?: boolean;
  /** What the client was working on; missing or null if it names no project. */
  project?: string | null;
  /** The names of the amounts in which the request counts already, by what another account has served of it. */
  counted?: ReadonlySet<string>;
}

/** All budgets of a config. The scope of a key's budget is the key. */
export function budgetsOf({ budgets, auth }: Pick<Config, "budgets" | "auth">): readonly Budget[] {
  const ofKeys = auth.apiKeys.flatMap((key) =>
    typeof key === "string" || !key.budgets
      ? []
      : key.budgets.map((budget) => ({
          ...budget,
          name: keyBudgetName(key.name, budget),
          scope: { key: key.name },
        })),
  );
  return [...budgets, ...ofKeys];
}

/** A member, or null for the owner, and what budgets may name of this person's. */
export interface BudgetedMember {
  member: Pick<Member, "id" | "name"> | null;
  /** Names of client keys; null for one without a name. */
  keys: readonly (string | null)[];
  accounts: readonly Pick<Account, "id" | "key">[];
}

/** Whether a budget's scope matches a request. */
export function matchesScope({ scope }: Budget, { member, account, key, model, project }: Subject): boolean {
  return (
    passes(scope.member, member?.name) &&
    passes(scope.account, account) &&
    passes(scope.key, key) &&
    passes(scope.model, model) &&
    passes(scope.project, project)
  );
}

/** @param pattern Undefined for all values. @param value Null and undefined match no pattern. */
const passes = (pattern: string | undefined, value: string | null | undefined): boolean =>
  pattern === undefined || (value != null && matchesPattern(pattern, value));

/** Whether a budget that stops requests names a key or its member, or has an amount for each of those. */
export function binds(
  { scope, each, then }: Budget,
  key: Pick<ClientKey, "name">,
  member: Pick<Member, "name"> | null,
): boolean {
  const isForMembers = each === "member" || scope.member !== undefined;
  if (then === "warn" || (each !== "key" && scope.key === undefined && !isForMembers)) return false;
  if (isForMembers && member === null) return false;
  return passes(scope.key, key.name) && passes(scope.member, member?.name);
}
