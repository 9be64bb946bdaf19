/** The periods in which budgets are counted, and the amounts in them, wherever the ledger is kept. */
import { applies, type Budget, type Subject } from "./budgets";
import { spanOf } from "./period";

/** What a request uses; null if the price is unknown. */
export interface Amounts {
  nanoCredits: number | null;
  premiumUnits: number | null;
}

export interface BudgetState {
  budget: Budget;
  /** In the budget's unit: what ended requests used. */
  used: number;
  /** In the budget's unit: the estimate for running requests. */
  reserved: number;
  /** Requests of unknown price; they count as 0. */
  unknown: number;
  /** Timestamps in milliseconds of the period; null for a session. */
  startedAt: number | null;
  resetsAt: number | null;
}

/** The entries that a request has in the ledger while it runs. */
export interface Reservation {
  readonly id: string;
  readonly entries: readonly LedgerEntry[];
}

export interface LedgerEntry {
  readonly budget: Budget;
  /** The primary key of the budget's period. */
  readonly key: readonly [budget: string, session: string, start: number];
}

/** What was used in one period, as stored. */
export interface UsedPeriod {
  key: LedgerEntry["key"];
  amount: number;
  unknown: number;
}

/** Amounts are stored as integers, in these parts of a unit. */
export const partsOf = { credits: 1e9, premium: 1e6, requests: 1 } as const;

/** The periods of the budgets that apply to a request. */
export function entriesFor(budgets: readonly Budget[], subject: Subject, at: number): LedgerEntry[] {
  return budgets.filter((budget) => applies(budget, subject)).map((budget) => entryFor(budget, subject.session, at));
}

/** A budget with another unit or period starts from 0. Of a session only a hash is stored. */
export function entryFor(budget: Budget, session: string | null, at: number): LedgerEntry {
  const { name, unit, per } = budget;
  const hash =
    per === "session" && session !== null
      ? new Bun.CryptoHasher("sha256").update(session).digest("hex").slice(0, 32)
      : "";
  return { budget, key: [`${unit}/${per}/${name}`, hash, spanOf(per, at).start] };
}

/** In the budget's unit; null if the price is unknown. */
export function amountIn({ unit }: Budget, { nanoCredits, premiumUnits }: Amounts): number | null {
  if (unit === "requests") return 1;
  if (unit === "premium") return premiumUnits;
  return nanoCredits === null ? null : nanoCredits / partsOf.credits;
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
