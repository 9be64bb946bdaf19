/** Holds requests to the budgets: what the relay asks before it sends a request, and tells when the request ends. */
import { type Awaitable, whenKnown } from "../awaitable";
import { BoundedMap } from "../bounded-map";
import type { ConfigStore } from "../config/store";
import type { ProxyError } from "../errors";
import type { ClientKey } from "../keys/client-keys";
import type { Member, Members } from "../keys/members";
import { type Budget, binds, budgetsOf, type Subject } from "./budgets";
import { type Amounts, type BudgetState, isSameAmount, type LedgerEntry, type Reservation } from "./entries";
import { isOwnAmount } from "./holders";
import type { Ledger, ReserveResult } from "./ledger";
import { exceededError, remainingOf } from "./sentences";
import { orUnable, patiently, recovered, sentenceOf } from "./unable";
import { type BudgetViews, openBudgetViews } from "./views";

export interface BudgetGuard extends BudgetViews {
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
   * What the budgets that apply to a request have left: `<budget>=<amount> <unit>` for each; names are percent-encoded. A member
   * is told only what is theirs alone. Undefined if that is nothing, or if the ledger cannot be reached now.
   */
  remaining(subject: Subject): Awaitable<string | undefined>;
  /** Whether a budget that stops requests names a key or its member, or has an amount for each. */
  limits(key: Pick<ClientKey, "name" | "member">): boolean;
  /** The member of an id; null for the owner. The name of a member who was removed meanwhile is empty. */
  memberOf(id: string | null): Pick<Member, "id" | "name"> | null;
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
  /** Called when the first budget is used, or at once if something waits. */
  openLedger(): Ledger;
  /** What requests of an earlier run used waits on this machine's disk for the ledger. */
  isWaiting?: boolean;
  /** Missing where one person has everything. */
  members?: Pick<Members, "find" | "list">;
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

export const openBudgetGuard = (options: Options): BudgetGuard => new Guard(options);

class Guard implements BudgetGuard {
  readonly #options: Options;
  #opened: Ledger | undefined;
  #known: { of: object; budgets: readonly Budget[] } | undefined;
  /** Model → the real cost of its requests by the estimate. */
  readonly #ratios = new BoundedMap<string, number>(maxModels);
  /** The running requests that a budget with `cut` may end. */
  readonly #running = new Map<Reservation, { subject: Subject; stop: (why: ProxyError) => void }>();
  readonly overview: BudgetViews["overview"];
  readonly holders: BudgetViews["holders"];
  readonly statesOfMember: BudgetViews["statesOfMember"];
  readonly emptyState: BudgetViews["emptyState"];

  constructor(options: Options) {
    this.#options = options;
    const { members, now } = options;
    const views = openBudgetViews({ budgets: () => this.budgets, ledger: () => this.#ledger(), members, now });
    this.overview = views.overview;
    this.holders = views.holders;
    this.statesOfMember = views.statesOfMember;
    this.emptyState = views.emptyState;
    if (options.isWaiting) this.#ledger();
  }

  get budgets(): readonly Budget[] {
    const { current } = this.#options.config;
    if (this.#known?.of !== current) this.#known = { of: current, budgets: budgetsOf(current) };
    return this.#known.budgets;
  }

  expect(model: string, { nanoCredits, premiumUnits }: Amounts): Amounts {
    const ratio = this.#ratios.get(model) ?? 1;
    return { nanoCredits: nanoCredits === null ? null : Math.ceil(nanoCredits * ratio), premiumUnits };
  }

  reserve(
    subject: Subject,
    expected: Amounts,
    stop?: (why: ProxyError) => void,
  ): Awaitable<Reservation | ProxyError | undefined> {
    if (this.budgets.length === 0) return undefined;
    const result = orUnable(() => this.#ledger().reserve(this.budgets, subject, expected));
    return whenKnown(result, (known) => this.#granted(known, subject, stop));
  }

  settle(reservation: Reservation, { model, expected, real }: SettledRequest): void {
    this.#running.delete(reservation);
    this.#learn(model, expected, real);
    void this.#afterwards(() =>
      whenKnown(
        patiently(() => this.#ledger().settle(reservation, real)),
        () => this.#cutExceeded(reservation.entries, ({ key }) => this.#ledger().tellUsedUp?.(key)),
      ),
    );
  }

  release(reservation: Reservation): Awaitable<void> {
    this.#running.delete(reservation);
    return this.#afterwards(() => patiently(() => this.#ledger().release(reservation)));
  }

  remaining(subject: Subject): Awaitable<string | undefined> {
    const shown = (states: BudgetState[]) =>
      remainingOf(states.filter((state) => mayKnow(state, subject))) || undefined;
    // The answer to the request is there already, and is given without the header while the ledger is away.
    return recovered(
      () => whenKnown(this.#ledger().states(this.budgets, subject), shown),
      () => undefined,
    );
  }

  limits(key: Pick<ClientKey, "name" | "member">): boolean {
    return this.budgets.some((budget) => binds(budget, key, this.memberOf(key.member)));
  }

  memberOf(id: string | null): Pick<Member, "id" | "name"> | null {
    return id === null ? null : { id, name: this.#options.members?.find(id)?.name ?? "" };
  }

  close(): void {
    this.#opened?.close();
  }

  #ledger(): Ledger {
    if (this.#opened) return this.#opened;
    this.#opened = this.#options.openLedger();
    this.#opened.followUsedUp?.((used) => {
      const entries = [...this.#running.keys()].flatMap((reservation) => reservation.entries);
      const entry = entries.find((each) => isSameAmount(each.key, used));
      if (entry) void this.#afterwards(() => this.#cutExceeded([entry], () => {}));
    });
    return this.#opened;
  }

  /** A failure after a request has ended must not fail the request. */
  #afterwards(write: () => Awaitable<void>): Awaitable<void> {
    return recovered(write, (thrown) =>
      this.#options.warn(
        `The budget ledger could not be written, so a request is missing in it: ${sentenceOf(thrown)}`,
      ),
    );
  }

  #learn(model: string, expected: Amounts, real: Amounts): void {
    if (!expected.nanoCredits || real.nanoCredits === null) return;
    const before = this.#ratios.get(model) ?? 1;
    const observed = before * (real.nanoCredits / expected.nanoCredits);
    this.#ratios.set(model, Math.min(maxRatio, Math.max(minRatio, before + learningRate * (observed - before))));
  }

  /** @param tell Called with what is used up: other servers run requests too. */
  #cutExceeded(entries: readonly LedgerEntry[], tell: (usedUp: LedgerEntry) => Awaitable<void>): Awaitable<void> {
    const cutting = entries.filter(({ budget: { cut, per } }) => cut && per !== "session");
    if (cutting.length === 0) return;
    return whenKnown(this.#ledger().read(cutting), (states) => {
      for (const [at, entry] of cutting.entries()) {
        const state = states[at]!;
        if (state.used < state.budget.limit) continue;
        this.#stopAll(entry, state);
        void this.#afterwards(() => tell(entry));
      }
    });
  }

  /** Ends the running requests that count for an amount which is used up. */
  #stopAll(entry: LedgerEntry, state: BudgetState): void {
    for (const [{ entries }, { subject, stop }] of this.#running)
      if (entries.some((each) => isSameAmount(each.key, entry.key)))
        stop(exceededError(state, this.#options.now(), mayKnow(state, subject)));
  }

  /** @throws ProxyError `quota`, unless another account may have an amount left. */
  #granted(
    result: ReserveResult,
    subject: Subject,
    stop: ((why: ProxyError) => void) | undefined,
  ): Reservation | ProxyError | undefined {
    if ("exceeded" in result) {
      const { now } = this.#options;
      const { exceeded } = result;
      const error = exceededError(exceeded, now(), mayKnow(exceeded, subject));
      const { resetsAt } = exceeded;
      if (resetsAt !== null) error.details.untilReady = () => Math.max(0, resetsAt - now());
      if (exceeded.budget.scope.account === undefined && exceeded.holder?.kind !== "account") throw error;
      return error;
    }
    const { reservation } = result;
    if (reservation.entries.length === 0) return undefined;
    if (stop) this.#running.set(reservation, { subject, stop });
    return reservation;
  }
}

/** The owner may know everything. */
const mayKnow = ({ budget }: BudgetState, { member }: Subject): boolean => !member || isOwnAmount(budget, member.name);
