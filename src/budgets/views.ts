/** What is used of the budgets, for the pages, the API, notices and metrics. */
import type { Awaitable } from "../awaitable";
import type { Members } from "../keys/members";
import type { Budget, BudgetedMember } from "./budgets";
import { type BudgetState, entriesOfMember, entryFor, type LedgerEntry, stateOf, storedAmount } from "./entries";
import { holderFrom, holderKindOf, holderNamed } from "./holders";
import type { HolderQuery, Ledger } from "./ledger";
import { orUnable } from "./unable";

export interface BudgetViews {
  /** The states of all budgets, or of some; of one with holders, that of the one who has used the largest share. */
  overview(of?: readonly Budget[]): Promise<BudgetState[]>;
  /** A budget's holders, the largest share of their limit first. @param budget One with holders. */
  holders(budget: Budget, query: Omit<HolderQuery, "limits">): Promise<{ count: number; states: BudgetState[] }>;
  /** The states of what a person's requests with these keys may count for. */
  statesOfMember(person: BudgetedMember): Awaitable<BudgetState[]>;
  /** The state of a budget of which nothing is used. */
  emptyState(budget: Budget): BudgetState;
}

interface ViewOptions {
  budgets(): readonly Budget[];
  ledger(): Ledger;
  members: Pick<Members, "find" | "list"> | undefined;
  /** Wall clock, ms. */
  now(): number;
}

export function openBudgetViews({ budgets, ledger, members, now }: ViewOptions): BudgetViews {
  const holders: BudgetViews["holders"] = async (budget, query) => {
    const kind = holderKindOf(budget)!;
    const ids = budget.limits && new Map(members?.list().map(({ id, name }) => [name.toLowerCase(), id]));
    const limits = Object.entries(budget.limits ?? {}).flatMap(([name, limit]) => {
      const holder = holderNamed(kind, name, (member) => ids?.get(member.toLowerCase()));
      return holder ? [[`${holder.member}/${holder.item}`.toLowerCase(), storedAmount(budget, limit)] as const] : [];
    });
    const page = await orUnable(() => ledger().holders(budget, { ...query, limits: Object.fromEntries(limits) }));
    const states = page.rows.map((stored) => {
      const holder = holderFrom(kind, stored, (member) => members?.find(member)?.name);
      return stateOf(entryFor(budget, holder, now()), stored, now());
    });
    return { count: page.count, states };
  };
  const read = (entries: readonly LedgerEntry[]) =>
    entries.length === 0 ? [] : orUnable(() => ledger().read(entries));
  const emptyState = (budget: Budget) => stateOf(entryFor(budget, null, now()), undefined, now());
  const overview = async (of = budgets()): Promise<BudgetState[]> => {
    const empty = of.map((budget) => entryFor(budget, null, now()));
    const shared = empty.filter(({ budget }) => holderKindOf(budget) === null);
    const states = await read(shared);
    return Promise.all(
      empty.map(async (entry) => {
        if (holderKindOf(entry.budget) === null) return states[shared.indexOf(entry)]!;
        const [highest] = (await holders(entry.budget, { limit: 1 })).states;
        return highest ?? emptyState(entry.budget);
      }),
    );
  };

  return {
    overview,
    holders,
    statesOfMember: (person) => read(entriesOfMember(budgets(), person, now())),
    emptyState,
  };
}
