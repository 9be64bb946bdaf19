/** What budgets should allow, added up plainly. It knows the patterns `anna`, `b*`, `*`, the key `…/key-1` and the account `hub-1`. */
import type { Subject } from "../../src/budgets/budgets";
import type { Budget } from "../../src/config/budget-schema";

/** What the budgets should do, as a person would add it up. */
export class BudgetModel {
  readonly #sums: Map<string, { used: number; reserved: number }>[];
  constructor(private readonly budgets: readonly Budget[]) {
    this.#sums = budgets.map(() => new Map());
  }

  /** @returns The sums that count the request; undefined if it is refused. */
  reserve(subject: Subject, amount: number) {
    const counting = this.budgets.flatMap((budget, at) => {
      const owner = ownerOf(budget, subject);
      if (owner === undefined) return [];
      const sum = this.#sums[at]!.get(owner) ?? { used: 0, reserved: 0 };
      this.#sums[at]!.set(owner, sum);
      return [{ budget, sum }];
    });
    const isOver = counting.some(
      ({ budget, sum }) =>
        budget.then === "stop" && amount > 0 && sum.used + sum.reserved + amount > limitFor(budget, subject),
    );
    if (isOver) return undefined;
    for (const { sum } of counting) sum.reserved += amount;
    return counting.map(({ sum }) => sum);
  }

  end(sums: { used: number; reserved: number }[], amount: number, real: number | null): void {
    for (const sum of sums) {
      sum.reserved -= amount;
      sum.used += real ?? 0;
    }
  }

  sumsOf(at: number): number[] {
    return [...this.#sums[at]!.values()].map(({ used }) => used).filter((used) => used > 0);
  }
}

/** Whose sum a request belongs to; undefined if the budget does not count it. */
function ownerOf({ scope, each }: Budget, { member, key, account }: Subject): string | undefined {
  if (scope.member !== undefined && !member) return undefined;
  if (scope.member === "anna" && member?.name !== "anna") return undefined;
  if (scope.member === "b*" && member?.name !== "ben") return undefined;
  if (scope.key !== undefined && !(member && key?.endsWith("/key-1"))) return undefined;
  if (scope.account !== undefined && account !== "hub-1") return undefined;
  if (each === "member" || (each === undefined && scope.member === "anna")) return member?.id;
  if (each === "key") return `${member?.id} ${key?.split("/").at(-1)}`;
  if (each === "account") return account ?? undefined;
  return "all";
}

function limitFor({ each, limit, limits }: Budget, { member, key, account }: Subject): number {
  const name = { member: member?.name, key, account, none: undefined }[each ?? "none"];
  return (name && limits?.[name]) || limit;
}
