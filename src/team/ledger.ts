/** The ledger in Postgres: what all servers together have used of each budget. */
import { failureReason, ProxyError } from "../lib/errors";
import type { Cost } from "../lib/money";
import type { Budget, Subject } from "../people/budgets/budgets";
import {
  amountIn,
  type BudgetState,
  entriesFor,
  isUnlimited,
  type LedgerEntry,
  type Reservation,
  stateOf,
  storedAmount,
  type UsedPeriod,
} from "../people/budgets/entries";
import {
  type HolderPage,
  type HolderQuery,
  type Ledger,
  type LedgerOptions,
  type ReserveResult,
  reservationLifetime,
} from "../people/budgets/ledger";
import { isAwayError, mayBeDone, sqlState } from "./away";
import type { Questions } from "./lane";
import { periodOf, readHolders, type Settlement, takeOverPeriods } from "./ledger-queries";
import { type SettlementOptions, Settlements } from "./settlements";

type TeamLedgerOptions = LedgerOptions & SettlementOptions;

/** All amounts are null where a period has no row yet. */
type PeriodRow = { place: number } & Pick<BudgetState, "used" | "reserved" | "unknown">;

/** What the database's function answers. Empty if all are reserved by an earlier try. */
interface Reserved {
  exceeded?: PeriodRow;
  periods?: PeriodRow[];
}

/** Milliseconds that a request waits for the database. */
const reserveTimeoutMs = 2_000;

export class TeamLedger implements Ledger {
  readonly #options: TeamLedgerOptions;
  readonly #settlements: Settlements;
  readonly isShared = true;

  constructor(options: TeamLedgerOptions) {
    this.#options = options;
    this.#settlements = new Settlements(options);
  }

  async reserve(budgets: readonly Budget[], subject: Subject, cost: Cost): Promise<ReserveResult> {
    const entries = entriesFor(budgets, subject, this.#options.now());
    if (entries.length === 0) return { reservation: { id: "", entries } };
    // Its time says how old what was used is: see settlements.ts.
    const id = Bun.randomUUIDv7();
    const wanted = entries.map((entry) => wantedOf(entry, cost, subject));
    const shown = (row: PeriodRow) => stateOf(entries[row.place]!, row, this.#options.now());
    try {
      const { exceeded, periods } = await this.#reserveSurely(id, wanted);
      if (exceeded) return { exceeded: shown(exceeded) };
      return { reservation: { id, entries, states: periods?.map(shown) } };
    } catch (thrown) {
      if (!isAwayError(thrown)) throw thrown;
      const limiting = entries.find((_, at) => isLimiting(wanted[at]!));
      if (limiting) {
        // The database may have reserved it all the same.
        if (mayBeDone(thrown)) this.#giveBack(id, entries);
        throw unavailable(limiting.budget);
      }
    }
    return { reservation: { id, entries } };
  }

  settle(reservation: Reservation, cost: Cost): Promise<void> {
    return this.#settle(reservation, (budget) => amountIn(budget, cost));
  }

  release(reservation: Reservation): Promise<void> {
    return this.#settle(reservation, () => 0);
  }

  states(budgets: readonly Budget[], subject: Subject): Promise<BudgetState[]> {
    const { postgres, now } = this.#options;
    return this.#read(postgres.requests, entriesFor(budgets, subject, now()), reserveTimeoutMs);
  }

  /** For pages. */
  read(entries: readonly LedgerEntry[]): Promise<BudgetState[]> {
    return this.#read(this.#options.postgres, entries);
  }

  holders(budget: Budget, query: HolderQuery): Promise<HolderPage> {
    return readHolders(this.#options.postgres, budget, query, this.#options.now());
  }

  /** Takes over what a data folder's ledger has counted: of each period the larger amount. */
  takeOver(periods: readonly UsedPeriod[]): Promise<void> {
    return takeOverPeriods(this.#options.postgres, periods);
  }

  get lost(): number {
    return this.#settlements.lost;
  }

  /** Writes to the database what waits on the disk, as far as that is possible. */
  finish(): Promise<void> {
    return this.#settlements.sendWaiting();
  }

  close(): void {
    this.#settlements.close();
  }

  /** What was reserved for a request that is not sent. Where it cannot be noted, the reservation ends by itself. */
  #giveBack(id: string, entries: readonly LedgerEntry[]): void {
    try {
      this.#settlements.keep(id, entries.map(unused));
    } catch (thrown) {
      this.#options.warn(`A budget's reservation stays until it expires: ${failureReason(thrown)}.`);
    }
  }

  async #read(lane: Questions, entries: readonly LedgerEntry[], timeoutMs?: number): Promise<BudgetState[]> {
    if (entries.length === 0) return [];
    const places = JSON.stringify(entries.map(({ key }, place) => ({ place, ...periodOf(key) })));
    const rows = await lane.ask(
      (sql) => sql<
        PeriodRow[]
      >`SELECT place, used::float8 AS used, reserved::float8 AS reserved, unknown::float8 AS unknown
        FROM jsonb_to_recordset(${places}::text::jsonb) AS given(place int, budget text, kind text, member text, item text, start_ms bigint)
        JOIN dragoman.ledger USING (budget, kind, member, item, start_ms)`,
      timeoutMs,
    );
    const byPlace = new Map(rows.map((row) => [row.place, row]));
    return entries.map((entry, place) => stateOf(entry, byPlace.get(place), this.#options.now()));
  }

  async #reserveAll(id: string, amounts: readonly WantedAmount[]): Promise<Reserved> {
    const { postgres, server } = this.#options;
    const wanted = JSON.stringify(amounts.map((amount, place) => ({ place, ...amount })));
    try {
      const [row] = await postgres.requests.ask(
        (sql) => sql<{ reserved: Reserved }[]>`SELECT dragoman.reserve(${id}::uuid, ${server}::uuid,
          ${reservationLifetime}::bigint, ${wanted}::text::jsonb) AS reserved`,
        reserveTimeoutMs,
      );
      return row!.reserved;
    } catch (thrown) {
      if (sqlState(thrown) === uniqueViolation) return {};
      throw thrown;
    }
  }

  /** A connection that breaks in between does not say whether it was done: another one does. */
  async #reserveSurely(id: string, amounts: readonly WantedAmount[]): Promise<Reserved> {
    try {
      return await this.#reserveAll(id, amounts);
    } catch (thrown) {
      if (!mayBeDone(thrown)) throw thrown;
      return this.#reserveAll(id, amounts).catch((again) => {
        throw isAwayError(again) ? thrown : again;
      });
    }
  }

  /** @param used In the budget's unit; null if the price is unknown. */
  async #settle({ id, entries }: Reservation, used: (budget: Budget) => number | null): Promise<void> {
    if (entries.length === 0) return;
    const settlements = entries.map(({ budget, key }) => {
      const amount = used(budget);
      return { ...periodOf(key), amount: storedAmount(budget, amount), unknown: amount === null ? 1 : 0 };
    });
    await this.#settlements.send(id, settlements);
  }
}

const unavailable = ({ name }: Budget) =>
  new ProxyError(
    "unable",
    `The budget \`${name}\` cannot be checked, because the database cannot be used now. Try again when it is back.`,
    { code: "budget_unavailable", status: 503, headers: { "retry-after": "5" } },
  );

/** A row with this key is there already. */
const uniqueViolation = "23505";

/** What is to be reserved in one period, as stored. */
interface WantedAmount extends Omit<Settlement, "unknown"> {
  /** The most that may be used; null if this request has no limit there. */
  cap: number | null;
  price_known: boolean;
}

/** A budget that stops nothing, and a request that costs nothing, need no look at what is left. */
const isLimiting = ({ cap, price_known, amount }: WantedAmount): boolean =>
  cap !== null && !(price_known && amount === 0);

const unused = ({ key }: LedgerEntry): Settlement => ({ ...periodOf(key), amount: 0, unknown: 0 });

function wantedOf({ budget, key }: LedgerEntry, cost: Cost, subject: Subject): WantedAmount {
  const amount = amountIn(budget, cost);
  const cap = isUnlimited(budget, amount, subject) ? null : storedAmount(budget, budget.limit);
  return { ...periodOf(key), amount: storedAmount(budget, amount), cap, price_known: amount !== null };
}
