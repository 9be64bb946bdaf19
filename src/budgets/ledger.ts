/**
 * What was used of each budget, in an SQLite file of its own. An amount is reserved before a request is sent, and
 * replaced by the real amount when the request ends, each in one transaction: parallel requests cannot exceed a limit
 * together, and a process that is killed leaves only reservations, which expire.
 */

import type { Database, SQLQueryBindings } from "bun:sqlite";
import { statSync } from "node:fs";
import type { Awaitable } from "../awaitable";
import { dayMs } from "../format";
import { type FileContent, fileIdentity, isDamage, type Migration, moveAside, openDatabase } from "../sqlite";
import type { Budget, Subject } from "./budgets";
import {
  type Amounts,
  amountIn,
  type BudgetState,
  budgetId,
  entriesFor,
  exceeds,
  type LedgerEntry,
  type Reservation,
  stateOf,
  storedAmount,
  type UsedPeriod,
} from "./entries";
import { holderKindOf, idPattern } from "./holders";
import { spanOf } from "./period";

export interface Ledger {
  /**
   * Reserves amounts for a request in every budget that applies to it, or in none.
   * @returns The reservation, or the state of the first budget that has too little left.
   */
  reserve(budgets: readonly Budget[], subject: Subject, amounts: Amounts): Awaitable<ReserveResult>;
  /** Replaces a reservation by the real amounts, even if it has expired. */
  settle(reservation: Reservation, amounts: Amounts): Awaitable<void>;
  /** Drops a reservation: the request was not sent, or it failed without a charge. */
  release(reservation: Reservation): Awaitable<void>;
  /** The states of the budgets that apply to a request. */
  states(budgets: readonly Budget[], subject: Subject): Awaitable<BudgetState[]>;
  /** The states of entries, in their order. */
  read(entries: readonly LedgerEntry[]): Awaitable<BudgetState[]>;
  /** Who has used something of a budget in this period, the largest share of a limit first. @param budget One with holders. */
  holders(budget: Budget, query: HolderQuery): Awaitable<HolderPage>;
  /** What was used in all periods that are kept. */
  periods(): Awaitable<UsedPeriod[]>;
  /** Takes over what another ledger has counted: of each period the larger amount. */
  takeOver(periods: readonly UsedPeriod[]): Awaitable<void>;
  /** Tells the servers of a team that an amount is used up, for requests that run there. Missing where there is one server. */
  tellUsedUp?(key: LedgerEntry["key"]): Awaitable<void>;
  followUsedUp?(listener: (key: LedgerEntry["key"]) => void): void;
  close(): void;
}

export interface HolderQuery {
  /** How many to return. */
  limit: number;
  /** How many to pass over. */
  offset?: number;
  /** Only those that have used this share of their limit. */
  atLeast?: number;
  /** By the holder's id in lower case, as stored; the others have the budget's limit. */
  limits?: Readonly<Record<string, number>>;
}

export interface HolderPage {
  /** All that the query asks for, on all pages. */
  count: number;
  rows: HolderRow[];
}

/** A holder's amounts, as stored. */
export interface HolderRow {
  id: string;
  used: number;
  reserved: number;
  unknown: number;
}

/** Milliseconds. A session that was not used for so long is not listed among the holders. */
export const sessionListedFor = 7 * dayMs;

export type ReserveResult = { reservation: Reservation } | { exceeded: BudgetState };

/** The ledger in an SQLite file, which is asked without waiting. */
export interface LocalLedger extends Ledger {
  reserve(budgets: readonly Budget[], subject: Subject, amounts: Amounts): ReserveResult;
  settle(reservation: Reservation, amounts: Amounts): void;
  release(reservation: Reservation): void;
  states(budgets: readonly Budget[], subject: Subject): BudgetState[];
  read(entries: readonly LedgerEntry[]): BudgetState[];
  holders(budget: Budget, query: HolderQuery): HolderPage;
  periods(): UsedPeriod[];
  takeOver(periods: readonly UsedPeriod[]): void;
}

export interface LedgerOptions {
  /** Wall clock, ms. */
  now(): number;
  /** The clock by which a server of a team renews its leases, ms; the one of the process if it is missing. */
  monotonic?: () => number;
  warn(sentence: string): void;
}

/** Milliseconds. Longer than the longest stream. */
export const reservationLifetime = 65 * 60_000;

/** Milliseconds. Ended periods and unused sessions are deleted after this time. */
const keptFor = 400 * dayMs;

const content: FileContent = { name: "ledger of the budgets", consequence: "every budget starts again from 0" };

/**
 * A file that turns out to be damaged is moved aside, whenever that is: what can be read of it is taken over.
 * @throws ProxyError, or SQLite's error, if the file cannot be opened.
 */
export function openLedger(path: string, options: LedgerOptions): LocalLedger {
  if (statSync(path, { throwIfNoEntry: false })?.size === 0)
    options.warn(`The file ${path} was empty, so every budget starts again from 0.`);
  let ledger: LocalLedger | undefined;
  let identity: string | undefined;
  const sound = (): LocalLedger => {
    identity ??= fileIdentity(path);
    ledger ??= openLedgerFile(path, options);
    identity ??= fileIdentity(path);
    return ledger;
  };
  /** @returns What the damaged file still tells. */
  const giveUp = (): UsedPeriod[] => {
    let periods: UsedPeriod[] = [];
    try {
      periods = ledger?.periods() ?? [];
    } catch {
      // the damage is there
    }
    ledger?.close();
    ledger = undefined;
    const consequence = periods.length > 0 ? "what its budgets have used was taken over" : content.consequence;
    moveAside(path, identity, { content: { ...content, consequence }, warn: options.warn });
    identity = undefined;
    return periods;
  };
  const ask = <T>(question: (ledger: LocalLedger) => T): T => {
    try {
      return question(sound());
    } catch (thrown) {
      if (!isDamage(thrown)) throw thrown;
      const periods = giveUp();
      sound().takeOver(periods);
      return question(sound());
    }
  };
  ask(() => {});
  return {
    reserve: (budgets, subject, amounts) => ask((each) => each.reserve(budgets, subject, amounts)),
    settle: (reservation, amounts) => ask((each) => each.settle(reservation, amounts)),
    release: (reservation) => ask((each) => each.release(reservation)),
    states: (budgets, subject) => ask((each) => each.states(budgets, subject)),
    read: (entries) => ask((each) => each.read(entries)),
    holders: (budget, query) => ask((each) => each.holders(budget, query)),
    periods: () => ask((each) => each.periods()),
    takeOver: (periods) => ask((each) => each.takeOver(periods)),
    close: () => ledger?.close(),
  };
}

function openLedgerFile(path: string, { now, warn }: LedgerOptions): LocalLedger {
  const prepare = (opened: Database) => void opened.run("DELETE FROM used WHERE changed_at_ms < ?", [now() - keptFor]);
  const database = openDatabase(path, { migrations, content, prepare, warn });
  const selectUsed = database.query<{ amount: number; unknown: number }, [string, string, number]>(
    "SELECT amount, unknown FROM used WHERE budget = ? AND holder = ? AND start = ?",
  );
  const selectReserved = database.query<{ amount: number }, [string, string, number]>(
    "SELECT coalesce(sum(amount), 0) AS amount FROM reservations WHERE budget = ? AND holder = ? AND start = ?",
  );
  const expire = database.query<null, [number, number]>(
    "DELETE FROM reservations WHERE expires_at_ms <= ? OR expires_at_ms > ?",
  );
  const insert = database.query<null, [string, string, string, number, number, number]>(
    "INSERT INTO reservations (id, budget, holder, start, amount, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const remove = database.query<null, [string]>("DELETE FROM reservations WHERE id = ?");
  const add = database.query<null, [string, string, number, number, number, number]>(
    `INSERT INTO used (budget, holder, start, amount, unknown, changed_at_ms) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET amount = amount + excluded.amount, unknown = unknown + excluded.unknown,
     changed_at_ms = excluded.changed_at_ms`,
  );

  const takeOver = database.query<null, [string, string, number, number, number, number]>(
    `INSERT INTO used (budget, holder, start, amount, unknown, changed_at_ms) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET amount = max(amount, excluded.amount), unknown = max(unknown, excluded.unknown)`,
  );

  const readEntry = (entry: LedgerEntry): BudgetState => {
    const { amount: used = 0, unknown = 0 } = selectUsed.get(...entry.key) ?? {};
    return stateOf(entry, { used, unknown, reserved: selectReserved.get(...entry.key)!.amount }, now());
  };

  /** Reservations that end later than a new one were made before the clock was set back. */
  const dropExpired = () => expire.run(now(), now() + reservationLifetime);

  const reserve = database.transaction((entries: readonly LedgerEntry[], amounts: Amounts, subject: Subject) => {
    dropExpired();
    const exceeded = entries.map(readEntry).find((state) => exceeds(state, amountIn(state.budget, amounts), subject));
    if (exceeded) return { exceeded };
    const id = crypto.randomUUID();
    for (const { budget, key } of entries)
      insert.run(id, ...key, storedAmount(budget, amountIn(budget, amounts)), now() + reservationLifetime);
    return { reservation: { id, entries } };
  });

  const settle = database.transaction(({ id, entries }: Reservation, amounts: Amounts) => {
    for (const { budget, key } of entries) {
      const amount = amountIn(budget, amounts);
      add.run(...key, storedAmount(budget, amount), amount === null ? 1 : 0, now());
    }
    remove.run(id);
  });

  return {
    reserve(budgets, subject, amounts) {
      const entries = entriesFor(budgets, subject, now());
      return entries.length === 0 ? { reservation: { id: "", entries } } : reserve.immediate(entries, amounts, subject);
    },
    settle(reservation, amounts) {
      if (reservation.entries.length > 0) settle.immediate(reservation, amounts);
    },
    release({ id, entries }) {
      if (entries.length > 0) remove.run(id);
    },
    states(budgets, subject) {
      dropExpired();
      return entriesFor(budgets, subject, now()).map(readEntry);
    },
    read(entries) {
      dropExpired();
      return entries.map(readEntry);
    },
    holders(budget, query) {
      dropExpired();
      return readHolders(database, budget, query, now());
    },
    periods: () =>
      database
        .query<Omit<UsedPeriod, "key"> & { budget: string; holder: string; start: number }, []>(
          "SELECT budget, holder, start, amount, unknown FROM used",
        )
        .all()
        .map(({ budget, holder, start, amount, unknown }) => ({ key: [budget, holder, start], amount, unknown })),
    takeOver: database.transaction((periods: readonly UsedPeriod[]) => {
      for (const { key, amount, unknown } of periods) takeOver.run(...key, amount, unknown, now());
    }).immediate,
    close: () => database.close(),
  };
}

function readHolders(
  database: Database,
  budget: Budget,
  { limit, offset = 0, atLeast = 0, limits = {} }: HolderQuery,
  now: number,
): HolderPage {
  const kind = holderKindOf(budget)!;
  const rows = database
    .query<HolderRow & { count: number }, SQLQueryBindings[]>(
      `WITH amounts AS (
         SELECT holder AS id, amount AS used, 0 AS reserved, unknown, changed_at_ms FROM used
           WHERE budget = ?1 AND start = ?2 AND holder LIKE ?3
         UNION ALL SELECT holder, 0, amount, 0, ?4 FROM reservations
           WHERE budget = ?1 AND start = ?2 AND holder LIKE ?3),
       sums AS (
         SELECT id, sum(used) AS used, sum(reserved) AS reserved, sum(unknown) AS unknown FROM amounts
           GROUP BY id HAVING max(changed_at_ms) >= ?4)
       SELECT sums.id, used, reserved, unknown, count(*) OVER () AS count
         FROM sums LEFT JOIN json_each(?5) AS own ON own.key = lower(sums.id)
         WHERE used + reserved + unknown > 0 AND used >= ?6 * coalesce(value, ?7) ORDER BY CAST(used AS REAL) / coalesce(value, ?7) DESC, sums.id LIMIT ?8 OFFSET ?9`,
    )
    .all(
      budgetId(budget),
      spanOf(budget.per, now).start,
      idPattern(kind),
      kind === "session" ? now - sessionListedFor : 0,
      JSON.stringify(limits),
      atLeast,
      storedAmount(budget, budget.limit),
      limit,
      offset,
    );
  return { count: rows[0]?.count ?? 0, rows: rows.map(({ count: _, ...row }) => row) };
}

const migrations: Migration[] = [
  (database: Database) => {
    database.run(`CREATE TABLE used (
      budget TEXT NOT NULL, session TEXT NOT NULL, start INTEGER NOT NULL,
      amount INTEGER NOT NULL, unknown INTEGER NOT NULL, changed_at_ms INTEGER NOT NULL,
      PRIMARY KEY (budget, session, start)) WITHOUT ROWID`);
    database.run(`CREATE TABLE reservations (
      id TEXT NOT NULL, budget TEXT NOT NULL, session TEXT NOT NULL, start INTEGER NOT NULL,
      amount INTEGER NOT NULL, expires_at_ms INTEGER NOT NULL,
      PRIMARY KEY (id, budget)) WITHOUT ROWID`);
    database.run("CREATE INDEX reservations_by_budget ON reservations (budget, session, start)");
  },
  (database: Database) => {
    for (const table of ["used", "reservations"]) database.run(`ALTER TABLE ${table} RENAME COLUMN session TO holder`);
  },
];
