/** What budgets should allow, added up plainly, as a person would. */

import type { Budget } from "../../src/config/budget-schema";
import type { Subject } from "../../src/people/budgets/budgets";

/** What one holder used of a budget in one period. */
interface Sum {
  used: number;
  unknown: number;
}

/** A request that runs. Null is an unknown price. */
interface Held {
  sums: { sum: Sum; budget: Budget; amount: number | null }[];
  at: number;
}

export class BudgetModel {
  readonly #sums = new Map<string, Sum>();
  readonly #held = new Set<Held>();
  /** @param lifetimeMs After this time a request that runs holds nothing any more, by the clock that is given. */
  constructor(
    public budgets: Budget[],
    public now: number,
    readonly lifetimeMs: number,
  ) {}

  /** @param credits Null if the price is unknown. @returns Undefined if it is refused. */
  reserve(subject: Subject, credits: number | null): Held | undefined {
    const counting = this.#counting(subject);
    if (counting.length > 0) this.#expire();
    const sums = counting.map((each) => ({ ...each, amount: amountIn(each.budget, credits) }));
    const isOver = sums.some(({ budget, sum, amount }) => {
      const left = limitFor(budget, subject) - sum.used - this.#reservedOf(sum);
      return budget.then === "stop" && amount !== 0 && (amount === null ? left <= 0 : amount > left);
    });
    if (isOver) return undefined;
    const held = { sums, at: this.now };
    this.#held.add(held);
    return held;
  }

  settle(held: Held, credits: number | null): void {
    this.release(held);
    for (const { sum, budget } of held.sums) {
      const amount = amountIn(budget, credits);
      if (amount === null) sum.unknown += 1;
      else sum.used += amount;
    }
  }

  release(held: Held): void {
    this.#held.delete(held);
  }

  /** The budgets that count a request, with what is used of them now. */
  states(subject: Subject) {
    this.#expire();
    return this.#counting(subject).map(({ budget, sum }) => ({
      name: budget.name,
      ...sum,
      reserved: this.#reservedOf(sum),
    }));
  }

  #counting(subject: Subject) {
    return this.budgets.flatMap((budget) => {
      const owner = ownerOf(budget, subject);
      if (owner === undefined) return [];
      const key = JSON.stringify([budget.name, owner, periodOf(budget, this.now)]);
      const sum = this.#sums.get(key) ?? { used: 0, unknown: 0 };
      this.#sums.set(key, sum);
      return [{ budget, sum }];
    });
  }

  #reservedOf(of: Sum): number {
    const amounts = [...this.#held].flatMap(({ sums }) => sums.filter(({ sum }) => sum === of));
    return amounts.reduce((total, { amount }) => total + (amount ?? 0), 0);
  }

  /** One that was made much later than now was made before the clock was set back. */
  #expire(): void {
    if (this.lifetimeMs === Number.POSITIVE_INFINITY) return;
    for (const held of this.#held)
      if (held.at > this.now + this.lifetimeMs || held.at + this.lifetimeMs <= this.now) this.#held.delete(held);
  }
}

const amountIn = ({ unit }: Budget, credits: number | null) => (unit === "requests" ? 1 : credits);

function periodOf({ per }: Budget, at: number): string {
  return new Date(at).toISOString().slice(0, per === "day" ? 10 : 7);
}

/** Whose sum a request belongs to; undefined if the budget does not count it. */
function ownerOf({ scope, each }: Budget, { member, key, account }: Subject): string | undefined {
  const wanted = [
    [scope.member, member?.name],
    [scope.key, key],
    [scope.account, account],
  ] as const;
  const matches = ([pattern, name]: (typeof wanted)[number]) =>
    pattern === undefined || (name != null && new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name));
  if (!wanted.every(matches)) return undefined;
  if (each === "member" || (each === undefined && scope.member !== undefined && !scope.member.includes("*")))
    return member?.id;
  if (each === "key") return key === null ? undefined : `${member?.id} ${key.split("/").at(-1)}`;
  if (each === "account") return account ?? undefined;
  return "all";
}

function limitFor({ each, limit, limits }: Budget, { member, key, account, project }: Subject): number {
  const name = { member: member?.name, key, account, project, none: undefined }[each ?? "none"];
  return (name && limits?.[name]) || limit;
}
