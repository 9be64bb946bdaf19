/** The periods in which budgets are counted, and the amounts in them, wherever the ledger is kept. */
import type { Cost } from "../../lib/money";
import { type Budget, type BudgetedMember, matchesScope, type Subject } from "./budgets";
import { type Holder, holderOf, limitOf, nobody, type StoredHolder, textOf } from "./holders";
import { spanOf } from "./period";

export interface BudgetState {
  /** With the limit of this holder. */
  budget: Budget;
  /** Whose amount it is; null for a budget that all share. */
  holder: Holder | null;
  /** In the budget's unit: what ended requests used. */
  used: number;
  /** In the budget's unit: the estimate for running requests. */
  reserved: number;
  /** Requests of unknown price; they count as 0. */
  unknown: number;
  /** Timestamps in milliseconds of the period. */
  startedAt: number;
  resetsAt: number;
}

/** The entries that a request has in the ledger while it runs. */
export interface Reservation {
  readonly id: string;
  readonly entries: readonly LedgerEntry[];
  /** Of the entries, with what is reserved. Missing where they did not come. */
  readonly states?: readonly BudgetState[] | undefined;
}

export interface LedgerEntry {
  /** With the limit of this holder. */
  readonly budget: Budget;
  /** Null for a budget that all share. */
  readonly holder: Holder | null;
  readonly key: AmountKey;
}

/** The primary key of an amount. */
export interface AmountKey extends StoredHolder {
  /** As `budgetId` makes it. */
  readonly budget: string;
  /** When its period began: Unix time, ms. */
  readonly start: number;
}

/** What was used in one period, as stored. */
export interface UsedPeriod {
  key: AmountKey;
  amount: number;
  unknown: number;
}

/** Amounts are stored as integers, in these parts of a unit. */
const partsOf = { credits: 1e9, premium: 1e6, requests: 1 } as const;

/** The periods of the budgets that apply to a request. Where requests are counted, one that counts already counts no more. */
export function entriesFor(budgets: readonly Budget[], subject: Subject, at: number): LedgerEntry[] {
  return budgets.flatMap((budget) => {
    const holder = matchesScope(budget, subject) ? holderOf(budget, subject) : undefined;
    if (holder === undefined) return [];
    const entry = entryFor(budget, holder, at);
    const isCounted = budget.unit === "requests" && subject.counted?.has(amountName(entry.key));
    return isCounted ? [] : [entry];
  });
}

/** The amounts for which requests of a member may count, with any model and project. */
export function entriesOfMember(budgets: readonly Budget[], person: BudgetedMember, at: number): LedgerEntry[] {
  const { member, keys, accounts } = person;
  const subjects = keys.flatMap((key) =>
    [undefined, ...accounts].map((account) => ({
      member,
      key,
      model: "",
      account: account?.id ?? null,
      ...(account && { accountKey: account.key }),
    })),
  );
  return budgets.flatMap((budget) => {
    const { model: _, project: __, ...scope } = budget.scope;
    const found = subjects.flatMap((subject) => entriesFor([{ ...budget, scope }], subject, at));
    const entries = new Map(found.map(({ holder, key }) => [textOf(key), entryFor(budget, holder, at)]));
    return [...entries.values()];
  });
}

/** A budget with another unit or period starts from 0. */
export function entryFor(budget: Budget, holder: Holder | null, at: number): LedgerEntry {
  const limit = limitOf(budget, holder);
  const { kind, member, item } = holder ?? nobody;
  return {
    budget: limit === budget.limit ? budget : { ...budget, limit },
    holder,
    key: { budget: budgetId(budget), kind, member, item, start: spanOf(budget.per, at).start },
  };
}

/** Whether two keys are those of the same amount, whatever the period. */
export const isSameAmount = (one: AmountKey, other: AmountKey): boolean => amountName(one) === amountName(other);

/** Of the amount, in every period. */
export const amountName = (key: AmountKey): string => `${key.budget} ${textOf(key)}`;

/** What the amounts of a budget are stored under. */
export const budgetId = ({ name, unit, per }: Budget): string => `${unit}/${per}/${name}`;

/** @param stored Amounts in parts of the unit; undefined if there are none. */
export function stateOf(
  { budget, holder, key }: LedgerEntry,
  stored: { used: number; reserved: number; unknown: number } | undefined,
  now: number,
): BudgetState {
  const parts = partsOf[budget.unit];
  return {
    budget,
    holder,
    used: (stored?.used ?? 0) / parts,
    reserved: (stored?.reserved ?? 0) / parts,
    unknown: stored?.unknown ?? 0,
    startedAt: key.start,
    resetsAt: spanOf(budget.per, now).end,
  };
}

/** In the budget's unit, in which a request that is billed in another one costs nothing; null if the price is unknown. */
export function amountIn({ unit }: Budget, cost: Cost): number | null {
  if (unit === "requests") return 1;
  if (unit !== cost.unit) return 0;
  return cost.amount === null ? null : cost.amount / 1e9;
}

/** An amount as it is stored; one of unknown price counts as 0. */
export const storedAmount = ({ unit }: Budget, amount: number | null): number =>
  Math.round((amount ?? 0) * partsOf[unit]);

/**
 * Whether the limit stops no request like this one. Where other models are to serve at the limit, a provider's model of
 * unknown price is one of those.
 */
export const isUnlimited = ({ then }: Budget, amount: number | null, { isProvided }: Subject): boolean =>
  then === "warn" || (then === "fallback" && amount === null && isProvided === true);

/** A request that costs nothing is always allowed; one of unknown price is allowed as long as something is left. */
export function exceeds({ budget, used, reserved }: BudgetState, amount: number | null, subject: Subject): boolean {
  if (isUnlimited(budget, amount, subject) || amount === 0) return false;
  const total = used + reserved + (amount ?? 0);
  return amount === null ? total >= budget.limit : total > budget.limit;
}
