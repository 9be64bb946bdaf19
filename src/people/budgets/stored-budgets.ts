/** Adds budgets to the config, and removes them. */
import type { Budget } from "../../config/budget-schema";
import { repeatChange } from "../../config/repeat-change";
import type { ConfigStore } from "../../config/store";
import { ProxyError } from "../../lib/errors";
import type { BudgetGuard } from "./guard";

/**
 * Adds a budget, which counts what is used from now on; or goes on with what one of its name, unit and period, removed
 * since, has used in this period, and then says nothing of when counting began.
 * @param now Wall clock, ms.
 * @throws ProxyError `conflict` if there is a budget of this name
 */
export async function addStoredBudget(
  config: ConfigStore,
  budget: Budget,
  guard: Pick<BudgetGuard, "overview">,
  now: number,
): Promise<void> {
  const [state] = await guard.overview([budget]);
  const since = state!.used > 0 ? {} : { since: new Date(now).toISOString() };
  await changeBudgets(config, (stored) => {
    if (stored.some(({ name }) => name === budget.name))
      throw new ProxyError(
        "conflict",
        `There is a budget \`${budget.name}\` already. Choose another name, or remove that budget first.`,
        { code: "budget_exists" },
      );
    return [...stored, { ...budget, ...since }];
  });
}

/** @throws ProxyError `not_found`, also for the budget of a key. */
export const removeStoredBudget = (config: ConfigStore, name: string): Promise<void> =>
  changeBudgets(config, (stored) => {
    const others = stored.filter((budget) => budget.name !== name);
    if (others.length === stored.length)
      throw new ProxyError(
        "not_found",
        `The config has no budget \`${name.slice(0, 127)}\`. The budgets of a key are changed with the key, in the config.`,
        { code: "budget_not_found" },
      );
    return others;
  });

const changeBudgets = (config: ConfigStore, change: (stored: readonly Budget[]) => readonly Budget[]): Promise<void> =>
  repeatChange(config, ({ current }) => ({ budgets: change(current.budgets) }));
