/** Holds one request to the budgets: reserves before it is sent, and settles with its cost when it ends. */

import { codecs } from "../../dialects/codecs";
import type { Usage } from "../../dialects/hub/reply";
import { type Awaitable, whenKnown } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import type { Cost, Costs } from "../../lib/money";
import type { Subject } from "../../people/budgets/budgets";
import { amountName, type Reservation } from "../../people/budgets/entries";
import type { BudgetGuard } from "../../people/budgets/guard";
import { type AttemptedAccount, costSoFar, type RequestState, unpriced } from "./request-log";

/** Bytes of a body for one token, roughly; the guard corrects the estimate by what requests of the model really cost. */
const bytesPerToken = 4;
/** Tokens of an answer, before anything is known of it. */
const expectedOutput = 500;

/** What a budget ends that cuts running streams. */
interface Stoppable {
  stop(why: ProxyError): void;
}

export class RequestBudget {
  readonly #guard: BudgetGuard;
  readonly #state: RequestState;
  readonly #request: Stoppable;
  #reservation: Reservation | undefined;
  #applies = false;
  #hasEnded = false;
  #account: AttemptedAccount | null | undefined;
  /** The model of the reservation. */
  #model: string | undefined;
  #expected = unpriced;
  /** A call of the reservation was charged. */
  #isCharged = false;
  /** What accounts that served the request before have settled. */
  #settled: Costs["cost"] = {};
  /** The names of the amounts in which they did. */
  readonly #counted = new Set<string>();

  constructor(guard: BudgetGuard, state: RequestState, request: Stoppable) {
    this.#guard = guard;
    this.#state = state;
    this.#request = request;
  }

  /** A call was served, and its usage is recorded: its account is charged for it, whoever serves the next call. */
  charged(): void {
    this.#isCharged = this.#reservation !== undefined;
  }

  /**
   * Reserves for a call with this account (null with a provider), in place of an earlier reservation. What another account
   * was charged is settled with that account. It is one request all the same, where requests are counted.
   * @returns The error if only this account's budget refuses the request, so that another account may serve it.
   * @throws ProxyError `quota`, `unable`.
   */
  reserve(account: AttemptedAccount | null): Awaitable<ProxyError | undefined> {
    const { target } = this.#state;
    if (!this.#reservation && this.#guard.budgets.length === 0) return undefined;
    if (this.#reservation && this.#account?.key === account?.key && this.#model === target?.model.id) return undefined;
    if (this.#isCharged) this.#settleSoFar();
    return whenKnown(this.release(), () => {
      this.#account = account;
      this.#model = target?.model.id;
      if (!target || this.#guard.budgets.length === 0) return undefined;
      this.#expected = this.#guard.expect(target.model.id, this.#costOf(expectedUsage(this.#state)));
      const stop = (why: ProxyError) => this.#request.stop(why);
      const subject = { ...this.#subject(), counted: this.#counted };
      return whenKnown(this.#guard.reserve(subject, this.#expected, stop), (result) => this.#keep(result));
    });
  }

  #keep(result: Reservation | ProxyError | undefined): ProxyError | undefined {
    if (result instanceof ProxyError) return result;
    this.#reservation = result;
    this.#applies ||= result !== undefined;
    // The request was stopped while it waited for its reservation.
    if (this.#hasEnded) void this.release();
    return undefined;
  }

  #settleSoFar(): void {
    const soFar = this.#costOf(this.#state.usage);
    const real = withExpected(less(soFar, this.#settled), this.#expected);
    this.#settled = { ...this.#settled, [soFar.unit]: soFar.amount ?? 0 };
    for (const { key } of this.#reservation!.entries) this.#counted.add(amountName(key));
    this.#guard.settle(this.#reservation!, { model: this.#model!, expected: this.#expected, real });
    this.#reservation = undefined;
    this.#isCharged = false;
  }

  /** Drops the reservation: nothing was charged. */
  release(): Awaitable<void> {
    const reservation = this.#reservation;
    this.#reservation = undefined;
    if (reservation) return this.#guard.release(reservation);
  }

  /**
   * Ends the reservation with the request.
   * @param cost What the request cost. Undefined if it was not served.
   * @param isCut The reply broke off before its end, so that its usage is not known, or only that of its beginning.
   */
  end(cost: Cost | undefined, isCut: boolean): void {
    this.#hasEnded = true;
    const reservation = this.#reservation;
    this.#reservation = undefined;
    if (!reservation) return;
    if (cost === undefined) return void this.#guard.release(reservation);
    const counted = withExpected(less(cost, this.#settled), this.#expected);
    // The last call was refused: accounts before it have settled everything.
    const isSettled = Object.values(this.#settled).some((amount) => amount > 0);
    if (isSettled && !counted.amount) return void this.#guard.release(reservation);
    const real = isCut ? this.#atLeastSent(counted) : counted;
    this.#guard.settle(reservation, { model: this.#model!, expected: this.#expected, real });
  }

  /** Tells the client what the budgets have left, if one applies. */
  addTo(response: Response): Awaitable<Response> {
    if (!this.#applies) return response;
    return whenKnown(this.#guard.remaining(this.#subject()), (remaining) => {
      if (remaining !== undefined) response.headers.set("x-dragoman-budget-remaining", remaining);
      return response;
    });
  }

  /** What a usage costs the account of the reservation. */
  #costOf(used: Partial<Usage>): Cost {
    return costSoFar(this.#state, {}, { account: this.#account ?? null, used });
  }

  /** Counts what was sent of a reply that broke off: a client that hangs up just before the end has nearly all of it. */
  #atLeastSent(cost: Cost): Cost {
    const { usage, clientDialect, sentBytes = 0 } = this.#state;
    if (clientDialect === "embeddings") return cost;
    const sent = Math.floor(sentBytes / codecs[clientDialect].facts.streamBytesPerToken);
    const input = usage.input ?? expectedUsage(this.#state).input;
    const output = Math.max(usage.output ?? 0, sent);
    return larger(cost, less(this.#costOf({ ...usage, input, output }), this.#settled));
  }

  #subject(): Subject {
    const { keyName, member, target, hints } = this.#state;
    return {
      member: this.#guard.memberOf(member),
      account: this.#account?.id ?? null,
      ...(this.#account && { accountKey: this.#account.key }),
      key: keyName,
      model: target!.model.id,
      isProvided: target!.provider !== undefined,
      project: hints.project ?? null,
    };
  }
}

/** If nothing of it is cached. */
const expectedUsage = ({ asked }: RequestState): Partial<Usage> => ({
  input: Math.ceil((asked?.bytes ?? 0) / bytesPerToken),
  output: expectedOutput,
});

/** What is left of a cost; unknown stays unknown. */
const less = (cost: Cost, settled: Costs["cost"]): Cost => ({
  ...cost,
  amount: cost.amount === null ? null : Math.max(0, cost.amount - (settled[cost.unit] ?? 0)),
});

/** What is not known counts as expected, and what is known in part as no less than that. */
const withExpected = (cost: Cost, expected: Cost): Cost =>
  cost.amount === null ? expected : cost.isAtLeast ? larger(cost, expected) : cost;

/** Of another unit, or of an unknown amount, nothing can be said. */
const larger = (cost: Cost, { unit, amount }: Cost): Cost =>
  cost.unit === unit && amount !== null ? { unit, amount: Math.max(cost.amount ?? 0, amount) } : cost;
