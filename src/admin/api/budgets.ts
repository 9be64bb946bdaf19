/** The budgets: shows them, adds one to the config and removes one from it. */
import type { App } from "../../app";
import { type BudgetItem, budgetItem } from "../../budgets/budget-list";
import { type Budget, budgetSchema } from "../../config/budget-schema";
import { repeatChange } from "../../config/repeat-change";
import type { ConfigStore } from "../../config/store";
import { ProxyError } from "../../errors";

/** A budget as the config has it. */
export const newBudgetSchema = budgetSchema();

/** @param member A member sees the budgets of keys that begin with the member's name: what is used of others, others have used too. */
export async function listBudgets({ budgets, members, now }: App, member: string | null = null): Promise<BudgetItem[]> {
  const states = await budgets.overview();
  if (member === null) return states.map((state) => budgetItem(state, now()));
  const prefix = `${members?.find(member)?.name}/`.toLowerCase();
  const own = states.filter(({ budget }) => budget.scope.key?.toLowerCase().startsWith(prefix));
  return own.map((state) => budgetItem(state, now()));
}

/** @throws ProxyError `conflict` if there is a budget of this name. */
export async function addBudget({ config, logger }: App, budget: Budget): Promise<{ added: true }> {
  await changeBudgets(config, (stored) => {
    if (stored.some(({ name }) => name === budget.name))
      throw new ProxyError(
        "conflict",
        `There is a budget \`${budget.name}\` already. Choose another name, or remove that budget first.`,
        {
          code: "budget_exists",
        },
      );
    return [...stored, budget];
  });
  logger.info(`The budget ${budget.name} was added.`);
  return { added: true };
}

/** @throws ProxyError `not_found`, also for the budget of a key. */
export async function removeBudget({ config, logger }: App, name: string): Promise<{ removed: true }> {
  await changeBudgets(config, (stored) => {
    const others = stored.filter((budget) => budget.name !== name);
    if (others.length === stored.length)
      throw new ProxyError(
        "not_found",
        `The config has no budget \`${name.slice(0, 127)}\`. The budgets of a key are changed with the key, in the config.`,
        { code: "budget_not_found" },
      );
    return others;
  });
  logger.info(`The budget ${name} was removed.`);
  return { removed: true };
}

const changeBudgets = (config: ConfigStore, change: (stored: readonly Budget[]) => readonly Budget[]): Promise<void> =>
  repeatChange(config, ({ current }) => ({ budgets: change(current.budgets) }));
