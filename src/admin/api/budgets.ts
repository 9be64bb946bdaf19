/** The budgets: shows them, adds one to the config and removes one from it. */

import { type Budget, budgetSchema } from "../../config/budget-schema";
import type { App, Scope } from "../../parts/app";
import {
  type BudgetItem,
  budgetItem,
  holdersItem,
  isExhausted,
  withoutAmounts,
} from "../../people/budgets/budget-list";
import { holderKindOf, isOwnAmount } from "../../people/budgets/holders";
import { addStoredBudget, removeStoredBudget } from "../../people/budgets/stored-budgets";
import type { Membership } from "../../people/keys/membership";

/** A budget as the config has it. */
export const newBudgetSchema = budgetSchema();

interface BudgetQuery {
  /** The name of the one budget that is asked for. */
  budget?: string | undefined;
  /** How many holders of a budget to list, and how many to pass over. */
  limit: number;
  offset: number;
}

/** A member sees what binds them and is theirs alone, and that a budget which others share is used up. */
export async function listBudgets(app: Scope, query: BudgetQuery): Promise<BudgetItem[]> {
  const asked = app.budgets.budgets.filter(({ name }) => query.budget === undefined || name === query.budget);
  if (app.membership) return ofMember(app, app.membership, asked);
  const shared = await app.budgets.overview(asked.filter((budget) => holderKindOf(budget) === null));
  const { limit, offset } = query;
  return Promise.all(
    asked.map(async (budget) => {
      const state = shared.find((each) => each.budget === budget);
      if (state) return budgetItem(state, app.now());
      const page = await app.budgets.holders(budget, { limit, offset });
      const item = holdersItem(app.budgets.emptyState(budget), { ...page, offset }, app.now());
      return { ...item, ...(budget.limits && { limits: { ...budget.limits } }) };
    }),
  );
}

async function ofMember(app: Scope, membership: Membership, asked: readonly Budget[]): Promise<BudgetItem[]> {
  const { budgets, now } = app;
  const member = budgets.memberOf(membership.id)!;
  const keys = membership.clientKeys().flatMap(({ name }) => name ?? []);
  const states = await budgets.statesOfMember({ member, keys, accounts: app.accounts });
  return asked.flatMap((budget) => {
    const own = states.filter((state) => state.budget.name === budget.name);
    const [first] = own;
    if (!first) return [];
    if (!isOwnAmount(budget, member.name))
      return isExhausted(first) && budget.then !== "warn" ? [withoutAmounts(first, true)] : [];
    switch (holderKindOf(budget)) {
      case "key":
      case "account":
        return [holdersItem(budgets.emptyState(budget), { count: own.length, states: own }, now())];
      default:
        return [budgetItem(first, now())];
    }
  });
}

/** @throws ProxyError `conflict` if there is a budget of this name. */
export async function addBudget({ config, budgets, logger, now }: App, budget: Budget): Promise<{ added: true }> {
  await addStoredBudget(config, budget, budgets, now());
  logger.info(`The budget ${budget.name} was added.`);
  return { added: true };
}

/** @throws ProxyError `not_found`, also for the budget of a key. */
export async function removeBudget({ config, logger }: App, name: string): Promise<{ removed: true }> {
  await removeStoredBudget(config, name);
  logger.info(`The budget ${name} was removed.`);
  return { removed: true };
}
