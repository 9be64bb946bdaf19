/** Holds requests to the budgets: what the relay asks before it sends a request, and tells when the request ends. */
import { type Awaitable, whenKnown } from "../awaitable";
import { BoundedMap } from "../bounded-map";
import type { ConfigStore } from "../config/store";
import { ProxyError } from "../errors";
import { type ClientKey, matchesPattern } from "../keys/client-keys";
import type { Member, Members } from "../keys/members";
import { type Budget, type BudgetedMember, budgetsOf, type Subject } from "./budgets";
import {
  type Amounts,
  type BudgetState,
  entriesFor,
  entriesOfMember,
  entryFor,
  type LedgerEntry,
  type Reservation,
  stateOf,
  storedAmount,
} from "./entries";
import { holderFrom, holderIdOf, holderKindOf, isOwnAmount } from "./holders";
import type { HolderQuery, Ledger, ReserveResult } from "./ledger";
import { exceededError, remainingOf } from "./sentences";

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
   * What the budgets that apply to a request have left: `<budget>=<amount> <unit>` for each; names are percent-encoded. A member
   * is told only what is theirs alone. Undefined if that is nothing, or if the ledger cannot be reached now.
   */
  remaining(subject: Subject): Awaitable<string | undefined>;
  /** The states of all budgets, or of some; of one with holders, that of the one who has used the largest share. */
  overview(of?: readonly Budget[]): Promise<BudgetState[]>;
  /** A budget's holders, the largest share of their limit first. @param budget One with holders. */
  holders(budget: Budget, query: Omit<HolderQuery, "limits">): Promise<{ count: number; states: BudgetState[] }>;
  /** The states of what a member's requests may count for. */
  statesOfMember(person: BudgetedMember): Awaitable<BudgetState[]>;
  /** The state of a budget of which nothing is used. */
  emptyState(budget: Budget): BudgetState;
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
  /** Called when the first budget is used. */
  openLedger(): Ledger;
  /** Missing where one person has everything. */
  members?: Pick<Members, "find" | "list">;
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

export function openBudgetGuard({ config, openLedger, members, now, warn }: Options): BudgetGuard {
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
  const running = new Map<Reservation, { subject: Subject; stop: (why: ProxyError) => void }>();
  const learn = (model: string, expected: Amounts, real: Amounts) => {
    if (!expected.nanoCredits || real.nanoCredits === null) return;
    const before = ratios.get(model) ?? 1;
    const observed = before * (real.nanoCredits / expected.nanoCredits);
    ratios.set(model, Math.min(maxRatio, Math.max(minRatio, before + learningRate * (observed - before))));
  };
  const cutExceeded = ({ entries }: Reservation): Awaitable<void> => {
    const cutting = entries.filter(({ budget: { cut, per } }) => cut && per !== "session");
    if (cutting.length === 0) return;
    return whenKnown(ledger().read(cutting), (states) => {
      for (const [at, state] of states.entries())
        if (state.used >= state.budget.limit)
          for (const [other, { subject, stop }] of running)
            if (other.entries.some((entry) => isSameAmount(entry, cutting[at]!)))
              stop(exceededError(state, now(), mayKnow(state, subject)));
    });
  };
  const granted = (result: ReserveResult, subject: Subject, stop?: (why: ProxyError) => void) => {
    if ("exceeded" in result) {
      const { exceeded } = result;
      const error = exceededError(exceeded, now(), mayKnow(exceeded, subject));
      // Another account may have an amount left.
      if (exceeded.budget.scope.account === undefined && exceeded.holder?.kind !== "account") throw error;
      return error;
    }
    const { reservation } = result;
    if (reservation.entries.length === 0) return undefined;
    if (stop) running.set(reservation, { subject, stop });
    return reservation;
  };
  const holders: BudgetGuard["holders"] = async (budget, query) => {
    const kind = holderKindOf(budget)!;
    const limits = Object.entries(budget.limits ?? {}).flatMap(([name, limit]) => {
      const id = holderIdOf(kind, name, (of) => members?.list().find((member) => isSameName(member.name, of))?.id);
      return id === undefined ? [] : [[id.toLowerCase(), storedAmount(budget, limit)] as const];
    });
    const page = await orUnable(() => ledger().holders(budget, { ...query, limits: Object.fromEntries(limits) }));
    const states = page.rows.map(({ id, ...stored }) => {
      const holder = holderFrom(kind, id, (member) => members?.find(member)?.name);
      return stateOf(entryFor(budget, holder, now()), stored, now());
    });
    return { count: page.count, states };
  };
  const memberOf: BudgetGuard["memberOf"] = (id) => (id === null ? null : { id, name: members?.find(id)?.name ?? "" });
  const read = (entries: readonly LedgerEntry[]) =>
    entries.length === 0 ? [] : orUnable(() => ledger().read(entries));
  const emptyState = (budget: Budget) => stateOf(entryFor(budget, null, now()), undefined, now());
  const overview = async (of = budgets()): Promise<BudgetState[]> => {
    const empty = of.map((budget) => entryFor(budget, null, now()));
    const shared = empty.filter(({ budget }) => holderKindOf(budget) === null);
    const states = await read(shared);
    return Promise.all(
      empty.map(async (entry) => {
        if (holderKindOf(entry.budget) === null) return states[shared.indexOf(entry)]!;
        const [highest] = (await holders(entry.budget, { limit: 1 })).states;
        return highest ?? emptyState(entry.budget);
      }),
    );
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
      return whenKnown(result, (known) => granted(known, subject, stop));
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
      const shown = (states: BudgetState[]) =>
        remainingOf(states.filter((state) => mayKnow(state, subject))) || undefined;
      // The answer to the request is there already, and is given without the header while the ledger is away.
      return recovered(
        () => whenKnown(read(entriesFor(budgets(), subject, now())), shown),
        () => undefined,
      );
    },
    overview,
    holders,
    statesOfMember: (person) => read(entriesOfMember(budgets(), person, now())),
    emptyState,
    limits({ name, member }) {
      const person = memberOf(member);
      return budgets().some(({ scope, each, then }) => {
        if (then === "warn" || (each !== "key" && each !== "member" && !scope.key && !scope.member)) return false;
        if (person === null && (each === "member" || scope.member !== undefined)) return false;
        const isNamed = (pattern: string | undefined, value: string | null) =>
          pattern === undefined || (value !== null && matchesPattern(pattern, value));
        return isNamed(scope.key, name) && isNamed(scope.member, person?.name ?? null);
      });
    },
    memberOf,
    close: () => opened?.close(),
  };
}

/** The owner may know everything. */
const mayKnow = ({ budget }: BudgetState, { member }: Subject): boolean => !member || isOwnAmount(budget, member.name);

const isSameAmount = ({ key: [budget, holder] }: LedgerEntry, { key }: LedgerEntry) =>
  budget === key[0] && holder === key[1];

const isSameName = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

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
