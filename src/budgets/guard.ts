/** Holds requests to the budgets: what the relay asks before it sends a request, and tells when the request ends. */
import type { ConfigStore } from "../config/store";
import { ProxyError, retryHeaders } from "../errors";
import { significant, zonedTime } from "../format";
import { type Budget, budgetsOf, type Subject } from "./budgets";
import { type Amounts, type BudgetState, type Ledger, openLedger, type Reservation } from "./ledger";

export interface BudgetGuard {
  /** All budgets of the config. */
  readonly budgets: readonly Budget[];
  /**
   * Reserves what a request is expected to use.
   * @returns Undefined if no budget applies.
   * @throws ProxyError `quota` if a budget has too little left; `unable` if the ledger cannot be written.
   */
  reserve(subject: Subject, expected: Amounts): Reservation | undefined;
  /** Replaces a reservation by the real amounts. */
  settle(reservation: Reservation, amounts: Amounts): void;
  /** Drops a reservation: nothing was charged. */
  release(reservation: Reservation): void;
  /** The states of the budgets that apply to a request. */
  states(subject: Subject): BudgetState[];
  /** The states of all budgets; those of sessions are empty. */
  overview(): BudgetState[];
  close(): void;
}

interface Options {
  config: Pick<ConfigStore, "current">;
  /** The ledger's file. It is created when the first budget is used. */
  path: string;
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

export function openBudgetGuard({ config, path, now, warn }: Options): BudgetGuard {
  let opened: Ledger | undefined;
  let known: { of: object; budgets: readonly Budget[] } | undefined;

  const budgets = () => {
    if (known?.of !== config.current) known = { of: config.current, budgets: budgetsOf(config.current) };
    return known.budgets;
  };
  const ledger = () => {
    opened ??= openLedger(path, { now, warn });
    return opened;
  };
  /** A failure after a request has ended must not fail the request. */
  const afterwards = (write: () => void) => {
    try {
      write();
    } catch (thrown) {
      warn(`The budget ledger could not be written, so a request is missing in it: ${sentenceOf(thrown)}`);
    }
  };

  return {
    get budgets() {
      return budgets();
    },
    reserve(subject, expected) {
      if (budgets().length === 0) return undefined;
      const result = orUnable(() => ledger().reserve(budgets(), subject, expected));
      if ("exceeded" in result) throw exceededError(result.exceeded, now());
      return result.reservation.entries.length === 0 ? undefined : result.reservation;
    },
    settle: (reservation, amounts) => afterwards(() => ledger().settle(reservation, amounts)),
    release: (reservation) => afterwards(() => ledger().release(reservation)),
    states: (subject) => (budgets().length === 0 ? [] : orUnable(() => ledger().states(budgets(), subject))),
    overview: () => (budgets().length === 0 ? [] : orUnable(() => ledger().overview(budgets()))),
    close: () => opened?.close(),
  };
}

/** A budget that cannot be checked is not taken for one that has something left. */
function orUnable<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw new ProxyError(
      "unable",
      `The budgets cannot be checked, so no request is sent: ${sentenceOf(thrown)} Free the disk, or remove the budgets from the config.`,
      { code: "budget_unavailable", cause: thrown, headers: { "x-should-retry": "false" } },
    );
  }
}

const sentenceOf = (thrown: unknown) =>
  `${thrown instanceof Error ? thrown.message.replace(/\.$/, "") : String(thrown)}.`;

function exceededError({ budget, used, reserved, resetsAt }: BudgetState, now: number): ProxyError {
  const free = resetsAt === null ? "" : `, free again at ${zonedTime(resetsAt, now)}`;
  const running = reserved > 0 ? ` and ${amountOf(reserved, budget)} reserved by running requests` : "";
  const seconds = resetsAt === null ? 86_400 : Math.max(1, Math.ceil((resetsAt - now) / 1000));
  return new ProxyError(
    "quota",
    `The budget \`${budget.name}\` is used up: ${significant(used)} of ${amountOf(budget.limit, budget)} used${running}${free}. The owner can raise it on the Budgets page or in the config.`,
    { code: "budget_exceeded", headers: { ...retryHeaders(seconds), "x-should-retry": "false" } },
  );
}

/** `12.5 credits` */
export const amountOf = (amount: number, { unit }: Pick<Budget, "unit">): string =>
  `${significant(amount)} ${unit === "premium" ? "premium requests" : unit}`;

/** The value of `x-dragoman-budget-remaining`: `<budget>=<amount> <unit>` for each budget; names are percent-encoded. */
export const remainingHeader = (states: readonly BudgetState[]): string =>
  states
    .map(({ budget, used, reserved }) => {
      const left = Math.max(0, budget.limit - used - reserved);
      return `${encodeURIComponent(budget.name)}=${Number(left.toFixed(3))} ${budget.unit}`;
    })
    .join(", ");
