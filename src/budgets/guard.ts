/** Holds requests to the budgets: what the relay asks before it sends a request, and tells when the request ends. */
import { type Awaitable, whenKnown } from "../awaitable";
import { BoundedMap } from "../bounded-map";
import type { ConfigStore } from "../config/store";
import { ProxyError, retryHeaders } from "../errors";
import { significant, zonedTime } from "../format";
import { type Budget, budgetsOf, type Subject } from "./budgets";
import type { Amounts, BudgetState, Ledger, Reservation, ReserveResult } from "./ledger";

export interface BudgetGuard {
  /** All budgets of the config. */
  readonly budgets: readonly Budget[];
  /** An estimate by list prices, corrected by what earlier requests of the model really cost. */
  expect(model: string, estimate: Amounts): Amounts;
  /**
   * Reserves what a request is expected to use.
   * @param stop Ends the request, for a budget that cuts running streams.
   * @returns Undefined if no budget applies; the error if only a budget of this account has too little left.
   * @throws ProxyError `quota` if a budget has too little left; `unable` if the ledger cannot be written.
   */
  reserve(
    subject: Subject,
    expected: Amounts,
    stop?: (why: ProxyError) => void,
  ): Awaitable<Reservation | ProxyError | undefined>;
  /** Replaces a reservation by the real amounts, and learns from them what to expect of the model. */
  settle(reservation: Reservation, request: SettledRequest): void;
  /** Drops a reservation: nothing was charged. */
  release(reservation: Reservation): Awaitable<void>;
  /**
   * What the budgets that apply to a request have left: `<budget>=<amount> <unit>` for each; names are percent-encoded.
   * Undefined if the ledger cannot be reached now.
   */
  remaining(subject: Subject): Awaitable<string | undefined>;
  /** The states of all budgets; those of sessions are empty. */
  overview(): Awaitable<BudgetState[]>;
  close(): void;
}

interface SettledRequest {
  model: string;
  /** What was reserved. */
  expected: Amounts;
  /** What it cost. */
  real: Amounts;
}

/** Most of a long prompt is usually cached, which list prices alone do not show. */
const [minRatio, maxRatio, learningRate] = [0.05, 3, 0.2];
const maxModels = 1_000;

interface Options {
  config: Pick<ConfigStore, "current">;
  /** Called when the first budget is used. */
  openLedger(): Ledger;
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

export function openBudgetGuard({ config, openLedger, now, warn }: Options): BudgetGuard {
  let opened: Ledger | undefined;
  let known: { of: object; budgets: readonly Budget[] } | undefined;

  const budgets = () => {
    if (known?.of !== config.current) known = { of: config.current, budgets: budgetsOf(config.current) };
    return known.budgets;
  };
  const ledger = () => {
    opened ??= openLedger();
    return opened;
  };
  /** A failure after a request has ended must not fail the request. */
  const afterwards = (write: () => Awaitable<void>): Awaitable<void> =>
    recovered(write, (thrown) =>
      warn(`The budget ledger could not be written, so a request is missing in it: ${sentenceOf(thrown)}`),
    );

  /** Model → the real cost of its requests by the estimate. */
  const ratios = new BoundedMap<string, number>(maxModels);
  /** The running requests that a budget with `cut` may end. */
  const running = new Map<Reservation, (why: ProxyError) => void>();
  const learn = (model: string, expected: Amounts, real: Amounts) => {
    if (!expected.nanoCredits || real.nanoCredits === null) return;
    const before = ratios.get(model) ?? 1;
    const observed = before * (real.nanoCredits / expected.nanoCredits);
    ratios.set(model, Math.min(maxRatio, Math.max(minRatio, before + learningRate * (observed - before))));
  };
  const cutExceeded = ({ entries }: Reservation): Awaitable<void> => {
    const cutting = entries.map(({ budget }) => budget).filter(({ cut, per }) => cut && per !== "session");
    if (cutting.length === 0) return;
    return whenKnown(ledger().overview(cutting), (states) => {
      for (const state of states.filter(({ used, budget }) => used >= budget.limit))
        for (const [other, stop] of running)
          if (other.entries.some(({ budget }) => budget.name === state.budget.name)) stop(exceededError(state, now()));
    });
  };
  const granted = (result: ReserveResult, stop?: (why: ProxyError) => void) => {
    if ("exceeded" in result) {
      const error = exceededError(result.exceeded, now());
      if (result.exceeded.budget.scope.account === undefined) throw error;
      return error;
    }
    const { reservation } = result;
    if (reservation.entries.length === 0) return undefined;
    if (stop) running.set(reservation, stop);
    return reservation;
  };

  return {
    get budgets() {
      return budgets();
    },
    expect(model, { nanoCredits, premiumUnits }) {
      const ratio = ratios.get(model) ?? 1;
      return { nanoCredits: nanoCredits === null ? null : Math.ceil(nanoCredits * ratio), premiumUnits };
    },
    reserve(subject, expected, stop) {
      if (budgets().length === 0) return undefined;
      const result = orUnable(() => ledger().reserve(budgets(), subject, expected));
      return whenKnown(result, (known) => granted(known, stop));
    },
    settle(reservation, { model, expected, real }) {
      running.delete(reservation);
      learn(model, expected, real);
      void afterwards(() => whenKnown(ledger().settle(reservation, real), () => cutExceeded(reservation)));
    },
    release(reservation) {
      running.delete(reservation);
      return afterwards(() => ledger().release(reservation));
    },
    remaining(subject) {
      const states = orUnable(() => ledger().states(budgets(), subject));
      // The answer to the request is there already, and is given without the header while the ledger is away.
      return states instanceof Promise ? states.then(remainingOf, () => undefined) : remainingOf(states);
    },
    overview: () => (budgets().length === 0 ? [] : orUnable(() => ledger().overview(budgets()))),
    close: () => opened?.close(),
  };
}

/** A budget that cannot be checked is not taken for one that has something left. */
const orUnable = <T>(work: () => Awaitable<T>): Awaitable<T> =>
  recovered(work, (thrown) => {
    if (thrown instanceof ProxyError && thrown.kind === "unable") throw thrown;
    throw new ProxyError(
      "unable",
      `The budgets cannot be checked, so no request is sent: ${sentenceOf(thrown)} Free the disk, or remove the budgets from the config.`,
      { code: "budget_unavailable", cause: thrown, headers: { "x-should-retry": "false" } },
    );
  });

/** The result of `work`, or of `recover` if it fails, at once or later. */
function recovered<T>(work: () => Awaitable<T>, recover: (thrown: unknown) => T): Awaitable<T> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(recover) : result;
  } catch (thrown) {
    return recover(thrown);
  }
}

const sentenceOf = (thrown: unknown) =>
  `${thrown instanceof Error ? thrown.message.replace(/\.$/, "") : String(thrown)}.`;

/** Numbers that look like a status: opencode repeats a request whose error has one. */
const statusLike = /\b(?:429|5\d\d)\b/;

function exceededError({ budget, used, reserved, resetsAt }: BudgetState, now: number): ProxyError {
  const free = resetsAt === null ? "" : `, free again at ${zonedTime(resetsAt, now)}`;
  const running = reserved > 0 ? ` and ${amountOf(reserved, budget)} reserved by running requests` : "";
  const seconds = resetsAt === null ? 86_400 : Math.max(1, Math.ceil((resetsAt - now) / 1000));
  const amounts = `: ${significant(used)} of ${amountOf(budget.limit, budget)} used${running}`;
  return new ProxyError(
    "quota",
    `The budget \`${budget.name}\` is used up${statusLike.test(amounts) ? "" : amounts}${free}. The owner can raise it on the Budgets page or in the config.`,
    {
      code: "budget_exceeded",
      headers: { ...retryHeaders(seconds), "x-should-retry": "false" },
      mayFallBack: budget.then === "fallback",
    },
  );
}

/** `12.5 credits` */
export const amountOf = (amount: number, { unit }: Pick<Budget, "unit">): string =>
  `${significant(amount)} ${unit === "premium" ? "premium requests" : unit}`;

const remainingOf = (states: readonly BudgetState[]): string =>
  states
    .map(({ budget, used, reserved }) => {
      const left = Math.max(0, budget.limit - used - reserved);
      return `${encodeURIComponent(budget.name)}=${Number(left.toFixed(3))} ${budget.unit}`;
    })
    .join(", ");
