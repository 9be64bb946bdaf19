/** Adds budgets to the config, and removes them. */
import { type Budget, budgetSchema } from "../../config/budget-schema";
import { repeatChange } from "../../config/repeat-change";
import type { ConfigStore, Stored } from "../../config/store";
import { ProxyError } from "../../lib/errors";
import type { BudgetGuard } from "./guard";

type Overview = Pick<BudgetGuard, "overview">;

/**
 * The budget with the time from which it counts; or as it is, if it says one, or goes on with what one of its name, unit and
 * period, removed since, has used in this period.
 */
async function countedFrom(budget: Budget, guard: Overview, now: number): Promise<Pick<Budget, "since">> {
  if (budget.since !== undefined) return {};
  const [state] = await guard.overview([budget]);
  return state!.used > 0 ? {} : { since: new Date(now).toISOString() };
}

/**
 * A patch of the config in which each new budget says that it counts from now, and each that is there already keeps its time.
 * @param now Wall clock, ms.
 */
export async function withCountedBudgets(
  patch: Stored,
  { current }: Pick<ConfigStore, "current">,
  guard: Overview,
  now: number,
): Promise<Stored> {
  if (!Array.isArray(patch.budgets)) return patch;
  const budgets = patch.budgets.map(async (given: unknown) => {
    const { data: budget } = budgetSchema().safeParse(given);
    if (!budget) return given;
    const known = current.budgets.find(({ name }) => name === budget.name);
    const { since } = known ?? (await countedFrom(budget, guard, now));
    return { ...(since !== undefined && { since }), ...(given as object) };
  });
  return { ...patch, budgets: await Promise.all(budgets) };
}

/**
 * Adds a budget, which counts what is used from now on.
 * @param now Wall clock, ms.
 * @throws ProxyError `conflict` if there is a budget of this name
 */
export async function addStoredBudget(
  config: ConfigStore,
  budget: Budget,
  guard: Overview,
  now: number,
): Promise<void> {
  const since = await countedFrom(budget, guard, now);
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
