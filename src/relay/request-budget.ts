/** Holds one request to the budgets: reserves before it is sent, and settles with its cost when it ends. */
import { type Awaitable, whenKnown } from "../awaitable";
import type { Subject } from "../budgets/budgets";
import type { Amounts, Reservation } from "../budgets/entries";
import type { BudgetGuard } from "../budgets/guard";
import { codecs } from "../dialects/codecs";
import { ProxyError } from "../errors";
import { type Cost, costOf } from "../upstream/models/price";
import type { AttemptedAccount, RequestState } from "./request-log";

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
  #expected: Amounts = { nanoCredits: null, premiumUnits: null };
  /** A call of the reservation was charged. */
  #isCharged = false;
  /** What accounts that served the request before have settled. */
  #settled: Amounts = { nanoCredits: 0, premiumUnits: 0 };

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
   * was charged is settled with that account: the request counts once for each account that served a part of it.
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
      this.#expected = this.#guard.expect(target.model.id, expectedCost(this.#state));
      const stop = (why: ProxyError) => this.#request.stop(why);
      return whenKnown(this.#guard.reserve(this.#subject(), this.#expected, stop), (result) => this.#keep(result));
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
    const { target, usage, facts } = this.#state;
    const soFar = costOf(target!.model.price, usage, facts?.initiator !== "agent");
    const real = withExpected(less(soFar, this.#settled), this.#expected);
    this.#settled = { nanoCredits: soFar.nanoCredits ?? 0, premiumUnits: soFar.premiumUnits ?? 0 };
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
   * @param cost What the request cost; null if that is not known. Undefined if it was not served.
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
    const isSettled = this.#settled.nanoCredits !== 0 || this.#settled.premiumUnits !== 0;
    if (isSettled && !counted.nanoCredits && !counted.premiumUnits) return void this.#guard.release(reservation);
    const real = isCut ? atLeastSent(counted, this.#settled, this.#state) : counted;
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

/** The cost of a request by the model's prices, if nothing of it is cached. */
function expectedCost({ target, asked, facts }: RequestState): Amounts {
  const usage = { input: Math.ceil((asked?.bytes ?? 0) / bytesPerToken), output: expectedOutput };
  const cost = costOf(target!.model.price, usage, facts?.initiator !== "agent");
  // A provider uses none of GitHub's premium requests.
  return target?.provider ? { ...cost, premiumUnits: 0 } : cost;
}

/** What is left of a cost; unknown stays unknown. */
const less = (cost: Cost, settled: Amounts): Cost => ({
  ...cost,
  nanoCredits: cost.nanoCredits === null ? null : Math.max(0, cost.nanoCredits - (settled.nanoCredits ?? 0)),
  premiumUnits: cost.premiumUnits === null ? null : Math.max(0, cost.premiumUnits - (settled.premiumUnits ?? 0)),
});

/** What is not known counts as expected, and what is known in part as no less than that. */
const withExpected = ({ nanoCredits, premiumUnits, isAtLeast }: Cost, expected: Amounts): Amounts => ({
  nanoCredits:
    nanoCredits === null || isAtLeast
      ? ((expected.nanoCredits && Math.max(nanoCredits ?? 0, expected.nanoCredits)) ?? nanoCredits)
      : nanoCredits,
  premiumUnits: premiumUnits ?? expected.premiumUnits,
});

/** Counts what was sent of a reply that broke off: a client that hangs up just before the end has nearly all of it. */
function atLeastSent(
  cost: Amounts,
  settled: Amounts,
  { target, asked, usage, clientDialect, sentBytes = 0, facts }: RequestState,
): Amounts {
  if (clientDialect === "embeddings") return cost;
  const sent = {
    ...usage,
    input: usage.input ?? Math.ceil((asked?.bytes ?? 0) / bytesPerToken),
    output: Math.max(usage.output ?? 0, Math.floor(sentBytes / codecs[clientDialect].facts.streamBytesPerToken)),
  };
  const { nanoCredits } = less(costOf(target!.model.price, sent, facts?.initiator !== "agent"), settled);
  return nanoCredits === null ? cost : { ...cost, nanoCredits: Math.max(cost.nanoCredits ?? 0, nanoCredits) };
}
