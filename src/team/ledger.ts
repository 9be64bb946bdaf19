/** The ledger in Postgres: what all servers together have used of each budget. */
import type { Budget, Subject } from "../budgets/budgets";
import {
  type Amounts,
  amountIn,
  type BudgetState,
  entriesFor,
  isUnlimited,
  type LedgerEntry,
  type Reservation,
  stateOf,
  storedAmount,
} from "../budgets/entries";
import { type Ledger, type LedgerOptions, type ReserveResult, reservationLifetime } from "../budgets/ledger";
import { ProxyError } from "../errors";
import { isAwayError, mayBeDone, sqlState } from "./away";
import { type Changes, notifyServers } from "./changes";
import type { Postgres } from "./connection";
import type { DiskQueue } from "./disk-queue";
import type { Leases } from "./leases";
import { periodOf, readHolders, readPeriods, type Settlement, takeOverPeriods } from "./ledger-queries";

export interface PostgresLedgerOptions extends LedgerOptions {
  postgres: Postgres;
  changes: Changes;
  /** The id of this server. */
  replica: string;
  /** @param unsettled Whether requests spent of leases that the ledger does not know of yet. */
  openLeases(unsettled: () => boolean): Leases;
  /** For settlements that wait for the database. @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<Settlement[]>;
}

export interface PostgresLedger extends Ledger {
  /** Writes to the database what waits on the disk, as far as that is possible. */
  finish(): Promise<void>;
}

/** What a request holds of this server's leases. */
interface LocalReservation {
  /** What was taken off each lease. */
  spent: number[];
  amounts: readonly WantedAmount[];
}

interface PeriodRow {
  place: number;
  used: number;
  reserved: number;
  unknown: number;
}

/** Milliseconds that a request waits for the database, before it spends what was reserved ahead. */
const reserveTimeoutMs = 2_000;
const usedUpTopic = "budget used up";
/** Milliseconds between two tries while the database is away. */
const retryMs = 1_000;

export function openPostgresLedger(options: PostgresLedgerOptions): PostgresLedger {
  const { postgres, changes, replica, now, warn } = options;
  const unfollow: (() => void)[] = [];
  const unsent = openSettlementQueue(options);
  const leases = options.openLeases(() => unsent.size > 0 || local.size > 0);
  /** Reservations that were made of leases, until the database has taken what they used. */
  const local = new Map<string, LocalReservation>();

  const readStates = async (entries: readonly LedgerEntry[]): Promise<BudgetState[]> => {
    if (entries.length === 0) return [];
    const places = JSON.stringify(entries.map(({ key }, place) => ({ place, ...periodOf(key) })));
    const rows = await postgres.ask(
      (sql) => sql<
        PeriodRow[]
      >`SELECT place, used::float8 AS used, reserved::float8 AS reserved, unknown::float8 AS unknown
        FROM jsonb_to_recordset(${places}::text::jsonb) AS given(place int, budget text, holder text, start_ms bigint)
        JOIN dragoman.ledger USING (budget, holder, start_ms)`,
      reserveTimeoutMs,
    );
    const byPlace = new Map(rows.map((row) => [row.place, row]));
    return entries.map((entry, place) => stateOf(entry, byPlace.get(place), now()));
  };

  /** @returns The place of an entry with too little left; null if all are reserved, now or by an earlier try. */
  const reserveAll = async (id: string, amounts: readonly WantedAmount[]): Promise<number | null> => {
    const wanted = JSON.stringify(amounts.map((amount, place) => ({ place, ...amount })));
    try {
      const [row] = await postgres.ask(
        (sql) => sql<{ place: number | null }[]>`SELECT dragoman.reserve(${id}::uuid, ${replica}::uuid,
          ${reservationLifetime}::bigint, ${wanted}::text::jsonb) AS place`,
        reserveTimeoutMs,
      );
      return row!.place;
    } catch (thrown) {
      if (sqlState(thrown) === uniqueViolation) return null;
      throw thrown;
    }
  };
  /** A connection that breaks in between does not say whether it was done: another one does. */
  const reserveSurely = async (id: string, amounts: readonly WantedAmount[]): Promise<number | null> => {
    try {
      return await reserveAll(id, amounts);
    } catch (thrown) {
      if (!mayBeDone(thrown)) throw thrown;
      return reserveAll(id, amounts).catch((again) => {
        throw isAwayError(again) ? thrown : again;
      });
    }
  };

  /** @returns The state of an entry that has too little left, also after this server has given back its lease. */
  const reserveOrRefuse = async (
    id: string,
    entries: readonly LedgerEntry[],
    wanted: readonly WantedAmount[],
  ): Promise<BudgetState | undefined> => {
    for (;;) {
      const askedAt = leases.now();
      const place = await reserveSurely(id, wanted);
      if (place === null) return undefined;
      const entry = entries[place]!;
      if (!(await leases.giveBack(entry, askedAt))) return (await readStates([entry]))[0];
    }
  };

  const reserveLocally = (
    id: string,
    entries: readonly LedgerEntry[],
    amounts: readonly WantedAmount[],
  ): ReserveResult => {
    const spent: number[] = [];
    for (const [at, entry] of entries.entries()) {
      const { amount, cap, price_known } = amounts[at]!;
      const isFree = cap === null || (price_known && amount === 0);
      if (!isFree && !leases.spend(entry, amount)) {
        for (const [before, back] of spent.entries()) leases.putBack(entries[before]!, back);
        throw leaseSpent(entry.budget);
      }
      spent[at] = isFree ? 0 : amount;
    }
    local.set(id, { spent, amounts });
    return { reservation: { id, entries } };
  };

  /** @param away Why the database did not answer. It may have reserved all the same, which a settlement takes back. */
  const reserveWithout = (
    away: unknown,
    id: string,
    entries: readonly LedgerEntry[],
    wanted: readonly WantedAmount[],
  ): ReserveResult => {
    try {
      return reserveLocally(id, entries, wanted);
    } catch (thrown) {
      if (mayBeDone(away))
        unsent.add(
          id,
          entries.map(({ key }) => ({ ...periodOf(key), amount: 0, unknown: 0 })),
        );
      throw thrown;
    }
  };

  /** The database is back: what still runs is reserved there too, so that leases need not be kept for it. */
  const reserveLate = async (): Promise<void> => {
    for (const [id, { amounts }] of [...local]) {
      try {
        const asked = amounts.map((amount) => ({ ...amount, cap: null }));
        await reserveAll(id, asked);
      } catch (thrown) {
        if (isAwayError(thrown)) return;
        throw thrown;
      }
      local.delete(id);
    }
  };
  postgres.whenBack(() => void reserveLate().catch((thrown) => warn(lateSentence(thrown))));

  /** @param used In the budget's unit; null if the price is unknown. */
  const settle = async ({ id, entries }: Reservation, used: (budget: Budget) => number | null): Promise<void> => {
    if (entries.length === 0) return;
    const settlements = entries.map(({ budget, key }) => {
      const amount = used(budget);
      return { ...periodOf(key), amount: storedAmount(budget, amount), unknown: amount === null ? 1 : 0 };
    });
    const spent = local.get(id)?.spent;
    if (spent) for (const [at, entry] of entries.entries()) leases.putBack(entry, spent[at]! - settlements[at]!.amount);
    await sendOrKeep(id, settlements);
    local.delete(id);
  };
  const sendOrKeep = async (id: string, settlements: Settlement[]): Promise<void> => {
    try {
      await sendSettlement(options, id, settlements);
    } catch (thrown) {
      if (!isAwayError(thrown)) throw thrown;
      unsent.add(id, settlements);
    }
  };

  return {
    async reserve(budgets, subject, amounts) {
      const entries = entriesFor(budgets, subject, now());
      if (entries.length === 0) return { reservation: { id: "", entries } };
      const id = crypto.randomUUID();
      const wanted = entries.map((entry) => wantedOf(entry, amounts, subject));
      try {
        const exceeded = await reserveOrRefuse(id, entries, wanted);
        if (exceeded) return { exceeded };
      } catch (thrown) {
        if (!isAwayError(thrown)) throw thrown;
        return reserveWithout(thrown, id, entries, wanted);
      }
      for (const [at, entry] of entries.entries()) leases.use(entry, wanted[at]!.amount);
      return { reservation: { id, entries } };
    },
    settle: (reservation, amounts) => settle(reservation, (budget) => amountIn(budget, amounts)),
    release: (reservation) => settle(reservation, () => 0),
    states: async (budgets, subject) => readStates(entriesFor(budgets, subject, now())),
    read: readStates,
    holders: (budget, query) => readHolders(postgres, budget, query, now()),
    periods: () => readPeriods(postgres),
    takeOver: (periods) => takeOverPeriods(postgres, periods),
    tellUsedUp: async ([budget, holder, start]) => {
      await postgres.ask((sql) => notifyServers(sql, { topic: usedUpTopic, replica, budget, holder, start }));
    },
    followUsedUp(listener) {
      unfollow.push(
        changes.on(usedUpTopic, ({ replica: from, budget, holder, start }) => {
          if (from !== replica) listener([String(budget), String(holder), Number(start)]);
        }),
      );
    },
    finish: () => unsent.replay(),
    close() {
      for (const end of unfollow) end();
      unsent.close();
      leases.close();
      if (local.size > 0) warn(`${local.size} requests end without an entry in their budgets.`);
    },
  };
}

async function sendSettlement(
  { postgres, replica }: PostgresLedgerOptions,
  id: string,
  settlements: readonly Settlement[],
): Promise<void> {
  await postgres.ask(
    (sql) => sql`SELECT dragoman.settle(${id}::uuid, ${replica}::uuid, ${JSON.stringify(settlements)}::text::jsonb)`,
  );
}

/** Settlements that the database could not take. Each counts once, however often it is sent. */
function openSettlementQueue(options: PostgresLedgerOptions) {
  const { warn } = options;
  let queue: DiskQueue<Settlement[]> | undefined;
  let timer: Timer | undefined;
  let closed = false;

  const replay = async (): Promise<void> => {
    timer = undefined;
    try {
      while (queue && queue.size > 0)
        for (const [id, settlements] of queue.take(100)) {
          await sendSettlement(options, id, settlements);
          queue.remove([id]);
        }
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`What requests used of their budgets could not be written (${thrown}).`);
      schedule();
    }
  };
  const schedule = () => {
    if (!closed) timer ??= setTimeout(replay, retryMs).unref();
  };
  try {
    queue = options.openQueue();
    if (queue.size > 0) schedule();
  } catch (thrown) {
    warn(`What requests use of their budgets while the database is away is lost (${thrown}).`);
  }
  return {
    add(id: string, settlements: Settlement[]) {
      queue?.add([[id, settlements]]);
      schedule();
    },
    replay,
    get size() {
      return closed ? 0 : (queue?.size ?? 0);
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

const leaseSpent = ({ name }: Budget) =>
  new ProxyError(
    "unable",
    `The budget \`${name}\` cannot be checked, because the database is away, and this server has used up what it had reserved ahead. Try again when the database is back.`,
    { code: "budget_unavailable", headers: { "x-should-retry": "false" } },
  );

/** A row with this key is there already. */
const uniqueViolation = "23505";

const lateSentence = (thrown: unknown) =>
  `What running requests hold of their budgets could not be written, so others may use it too (${thrown}).`;

/** What is to be reserved in one period, as stored. */
interface WantedAmount extends Omit<Settlement, "unknown"> {
  /** The most that may be used; null if this request has no limit there. */
  cap: number | null;
  price_known: boolean;
}

function wantedOf({ budget, key }: LedgerEntry, amounts: Amounts, subject: Subject): WantedAmount {
  const amount = amountIn(budget, amounts);
  const cap = isUnlimited(budget, amount, subject) ? null : storedAmount(budget, budget.limit);
  return { ...periodOf(key), amount: storedAmount(budget, amount), cap, price_known: amount !== null };
}
