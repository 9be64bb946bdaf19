/** Holds requests to the budgets, and says what is used of them. */

import type { ConfigStore } from "../../config/store";
import { type Awaitable, orElse, whenKnown } from "../../lib/awaitable";
import { BoundedMap } from "../../lib/bounded-map";
import type { ProxyError } from "../../lib/errors";
import type { Cost } from "../../lib/money";
import type { ClientKey } from "../keys/client-keys";
import type { Member, Members } from "../keys/members";
import { type Budget, type BudgetedMember, binds, budgetsOf, type Subject } from "./budgets";
import {
  amountIn,
  amountName,
  type BudgetState,
  entriesOfMember,
  entryFor,
  isSameAmount,
  type LedgerEntry,
  type Reservation,
  stateOf,
  storedAmount,
} from "./entries";
import { holderFrom, holderKindOf, holderNamed, isOwnAmount } from "./holders";
import type { HolderQuery, Ledger, ReserveResult } from "./ledger";
import { exceededError, remainingOf } from "./sentences";
import { orUnable, patiently, sentenceOf } from "./unable";

interface SettledRequest {
  model: string;
  /** What was reserved. */
  expected: Cost;
  /** What it cost. */
  real: Cost;
}

/** Most of a long prompt is usually cached, which list prices alone do not show. */
const [minRatio, maxRatio, learningRate] = [0.05, 3, 0.2];
const maxModels = 1_000;
/** Milliseconds between two looks at what other servers have used. */
const lookEvery = 1_000;

interface Options {
  config: Pick<ConfigStore, "current">;
  /** Called when the first budget is used, or at once if something waits. */
  openLedger(): Ledger;
  /** What requests of an earlier run used waits on this machine's disk for the ledger. */
  isWaiting?: boolean;
  /** Missing where one person has everything. */
  members?: Pick<Members, "find" | "hearAll" | "list">;
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

/** What the relay asks before it sends a request, and tells when the request ends; and what pages, the API and notices show. */
export class BudgetGuard {
  readonly #options: Options;
  #opened: Ledger | undefined;
  #known: { of: object; budgets: readonly Budget[] } | undefined;
  /** Model → the real cost of its requests by the estimate. */
  readonly #ratios = new BoundedMap<string, number>(maxModels);
  /** The running requests that a budget with `cut` may end. */
  readonly #running = new Map<Reservation, { subject: Subject; stop: (why: ProxyError) => void }>();

  #lost = 0;
  #looking: Timer | undefined;

  constructor(options: Options) {
    this.#options = options;
    if (options.isWaiting) this.#ledger();
  }

  /** How many requests are missing in the ledger, since the start. */
  get lost(): number {
    return this.#lost + (this.#opened?.lost ?? 0);
  }

  /** All budgets of the config. */
  get budgets(): readonly Budget[] {
    const { current } = this.#options.config;
    if (this.#known?.of !== current) this.#known = { of: current, budgets: budgetsOf(current) };
    return this.#known.budgets;
  }

  /** An estimate by list prices, corrected by what earlier requests of the model really cost. */
  expect(model: string, cost: Cost): Cost {
    const { unit, amount } = cost;
    if (unit !== "credits" || amount === null) return cost;
    return { unit, amount: Math.ceil(amount * (this.#ratios.get(model) ?? 1)) };
  }

  /**
   * Reserves what a request is expected to use.
   * @param stop Ends the request, for a budget that cuts running streams.
   * @returns Undefined if no budget applies; the error if only a budget of this account has too little left.
   * @throws ProxyError `quota` if a budget has too little left; `unable` if the ledger cannot be written.
   */
  reserve(
    subject: Subject,
    expected: Cost,
    stop?: (why: ProxyError) => void,
  ): Awaitable<Reservation | ProxyError | undefined> {
    if (this.budgets.length === 0) return undefined;
    const result = orUnable(() => this.#ledger().reserve(this.budgets, subject, expected));
    return whenKnown(result, (known) => this.#granted(known, subject, expected, stop));
  }

  /** Replaces a reservation by the real amounts, and learns from them what to expect of the model. */
  settle(reservation: Reservation, { model, expected, real }: SettledRequest): void {
    this.#running.delete(reservation);
    this.#learn(model, expected, real);
    const settle = () => patiently(() => this.#ledger().settle(reservation, real));
    void this.#afterwards(() =>
      whenKnown(
        orElse(settle, (thrown) => {
          this.#lost += 1;
          throw thrown;
        }),
        () => this.#cutExceeded(reservation.entries),
      ),
    );
  }

  /** Drops a reservation: nothing was charged. */
  release(reservation: Reservation): Awaitable<void> {
    this.#running.delete(reservation);
    return this.#afterwards(() => patiently(() => this.#ledger().release(reservation)));
  }

  /**
   * What the budgets that apply to a request have left: `<budget>=<amount> <unit>` for each; names are percent-encoded. A member
   * is told only what is theirs alone. Undefined if that is nothing, or if the ledger cannot be reached now.
   * @param states Of all these budgets, if they are known.
   */
  remaining(subject: Subject, states?: readonly BudgetState[]): Awaitable<string | undefined> {
    const shown = (states: readonly BudgetState[]) =>
      remainingOf(states.filter((state) => mayKnow(state, subject))) || undefined;
    // The answer to the request is there already, and is given without the header while the ledger is away.
    return orElse<string | undefined>(
      () => whenKnown(states ?? this.#ledger().states(this.budgets, subject), shown),
      () => undefined,
    );
  }

  /** Whether a budget that stops requests names a key or its member, or has an amount for each. */
  limits(key: Pick<ClientKey, "name" | "member">): boolean {
    return this.budgets.some((budget) => binds(budget, key, this.memberOf(key.member)));
  }

  /** The member of an id; null for the owner. The name of a member who was removed meanwhile is empty. */
  memberOf(id: string | null): Pick<Member, "id" | "name"> | null {
    return id === null ? null : { id, name: this.#options.members?.find(id)?.name ?? "" };
  }

  /** The states of all budgets, or of some; of one with holders, that of the one who has used the largest share. */
  async overview(of = this.budgets): Promise<BudgetState[]> {
    const shared = of.filter((budget) => holderKindOf(budget) === null);
    const states = await this.#read(shared.map((budget) => this.#entryOf(budget)));
    return Promise.all(
      of.map(async (budget) => {
        if (holderKindOf(budget) === null) return states[shared.indexOf(budget)]!;
        const [highest] = (await this.holders(budget, { limit: 1 })).states;
        return highest ?? this.emptyState(budget);
      }),
    );
  }

  /** A budget's holders, the largest share of their limit first. @param budget One with holders. */
  async holders(budget: Budget, query: Omit<HolderQuery, "limits">): Promise<{ count: number; states: BudgetState[] }> {
    const { members, now } = this.#options;
    const kind = holderKindOf(budget)!;
    await members?.hearAll();
    const ids = budget.limits && new Map(members?.list().map(({ id, name }) => [name.toLowerCase(), id]));
    const limits = Object.entries(budget.limits ?? {}).flatMap(([name, limit]) => {
      const holder = holderNamed(kind, name, (member) => ids?.get(member.toLowerCase()));
      return holder ? [[`${holder.member}/${holder.item}`.toLowerCase(), storedAmount(budget, limit)] as const] : [];
    });
    const asked = { ...query, limits: Object.fromEntries(limits) };
    const page = await orUnable(() => this.#ledger().holders(budget, asked));
    const states = page.rows.map((stored) => {
      const holder = holderFrom(kind, stored, (member) => members?.find(member)?.name);
      return stateOf(entryFor(budget, holder, now()), stored, now());
    });
    return { count: page.count, states };
  }

  /** The states of what a person's requests with these keys may count for. */
  statesOfMember(person: BudgetedMember): Awaitable<BudgetState[]> {
    return this.#read(entriesOfMember(this.budgets, person, this.#options.now()));
  }

  /** The state of a budget of which nothing is used. */
  emptyState(budget: Budget): BudgetState {
    return stateOf(this.#entryOf(budget), undefined, this.#options.now());
  }

  close(): void {
    clearInterval(this.#looking);
    this.#opened?.close();
  }

  #ledger(): Ledger {
    if (this.#opened) return this.#opened;
    this.#opened = this.#options.openLedger();
    // What other servers use ends requests that run here.
    if (this.#opened.isShared)
      this.#looking = setInterval(() => {
        const running = [...this.#running.keys()].flatMap(({ entries }) => entries);
        void this.#afterwards(() => this.#cutExceeded(running));
      }, lookEvery).unref();
    return this.#opened;
  }

  /** The amount that all share. */
  #entryOf(budget: Budget): LedgerEntry {
    return entryFor(budget, null, this.#options.now());
  }

  #read(entries: readonly LedgerEntry[]): Awaitable<BudgetState[]> {
    return entries.length === 0 ? [] : orUnable(() => this.#ledger().read(entries));
  }

  /** A failure after a request has ended must not fail the request. */
  #afterwards(write: () => Awaitable<void>): Awaitable<void> {
    return orElse(write, (thrown) =>
      this.#options.warn(
        `The budget ledger could not be written, so a request is missing in it: ${sentenceOf(thrown)}`,
      ),
    );
  }

  #learn(model: string, expected: Cost, real: Cost): void {
    if (!expected.amount || real.amount === null || expected.unit !== "credits" || real.unit !== "credits") return;
    const before = this.#ratios.get(model) ?? 1;
    const observed = before * (real.amount / expected.amount);
    this.#ratios.set(model, Math.min(maxRatio, Math.max(minRatio, before + learningRate * (observed - before))));
  }

  /** Ends the running requests that count for one of these amounts, if it is used up and its budget cuts. */
  #cutExceeded(entries: readonly LedgerEntry[]): Awaitable<void> {
    const cutting = [
      ...new Map(entries.filter(({ budget }) => budget.cut).map((entry) => [amountName(entry.key), entry])).values(),
    ];
    if (cutting.length === 0) return;
    return whenKnown(this.#ledger().read(cutting), (states) => {
      for (const [at, entry] of cutting.entries()) {
        const state = states[at]!;
        if (state.used < state.budget.limit) continue;
        this.#stopAll(entry, state);
      }
    });
  }

  /** Ends the running requests that count for an amount which is used up. */
  #stopAll(entry: LedgerEntry, state: BudgetState): void {
    for (const [{ entries }, { subject, stop }] of this.#running)
      if (entries.some((each) => isSameAmount(each.key, entry.key)))
        stop(exceededError(state, this.#options.now(), { showsAmounts: mayKnow(state, subject) }));
  }

  /** @throws ProxyError `quota`, unless another account may have an amount left. */
  #granted(
    result: ReserveResult,
    subject: Subject,
    expected: Cost,
    stop: ((why: ProxyError) => void) | undefined,
  ): Reservation | ProxyError | undefined {
    if ("exceeded" in result) {
      const { exceeded } = result;
      const about = { showsAmounts: mayKnow(exceeded, subject), expected: amountIn(exceeded.budget, expected) };
      const error = exceededError(exceeded, this.#options.now(), about);
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
