/**
 * What was used of each budget, in an SQLite file of its own. An amount is reserved before a request is sent, and
 * replaced by the real amount when the request ends, each in one transaction: parallel requests cannot exceed a limit
 * together, and a process that is killed leaves only reservations, which expire.
 */

import type { Database, SQLQueryBindings } from "bun:sqlite";
import { statSync } from "node:fs";
import type { Awaitable } from "../../lib/awaitable";
import { dayMs } from "../../lib/format";
import type { Cost } from "../../lib/money";
import { type FileContent, isDamage, type Migration, SqliteFile } from "../../lib/sqlite";
import type { Budget, Subject } from "./budgets";
import {
  type AmountKey,
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
import { holderKindOf, type StoredHolder } from "./holders";
import { spanOf } from "./period";

export interface Ledger {
  /**
   * Reserves amounts for a request in every budget that applies to it, or in none.
   * @returns The reservation, or the state of the first budget that has too little left.
   */
  reserve(budgets: readonly Budget[], subject: Subject, cost: Cost): Awaitable<ReserveResult>;
  /** Replaces a reservation by the real amounts, even if it has expired. */
  settle(reservation: Reservation, cost: Cost): Awaitable<void>;
  /** Drops a reservation: the request was not sent, or it failed without a charge. */
  release(reservation: Reservation): Awaitable<void>;
  /** The states of the budgets that apply to a request. */
  states(budgets: readonly Budget[], subject: Subject): Awaitable<BudgetState[]>;
  /** The states of entries, in their order. */
  read(entries: readonly LedgerEntry[]): Awaitable<BudgetState[]>;
  /** Who has used something of a budget in this period, the largest share of a limit first. @param budget One with holders. */
  holders(budget: Budget, query: HolderQuery): Awaitable<HolderPage>;
  /** Other servers use the same amounts. */
  readonly isShared?: boolean;
  /** How many settlements it took and could not count later. Missing where it counts at once. */
  readonly lost?: number;
  close(): void;
}

export interface HolderQuery {
  /** How many to return. */
  limit: number;
  /** How many to pass over. */
  offset?: number;
  /** Only those that have used this share of their limit. */
  atLeast?: number;
  /** By the holder's `member/item` in lower case; the others have the budget's limit. */
  limits?: Readonly<Record<string, number>>;
}

export interface HolderPage {
  /** All that the query asks for, on all pages. */
  count: number;
  rows: HolderRow[];
}

/** A holder's amounts, as stored. */
export interface HolderRow extends Pick<StoredHolder, "member" | "item"> {
  used: number;
  reserved: number;
  unknown: number;
}

export type ReserveResult = { reservation: Reservation } | { exceeded: BudgetState };

export interface LedgerOptions {
  /** Wall clock, ms. */
  now(): number;
  warn(sentence: string): void;
}

/** Milliseconds. Longer than the longest stream. */
export const reservationLifetime = 65 * 60_000;

/** Milliseconds. Ended periods are deleted after this time. */
const keptFor = 400 * dayMs;

export const ledgerContent: FileContent = {
  name: "ledger of the budgets",
  consequence: "every budget starts again from 0",
};

const keyColumns = "budget, kind, member, item, start";
type KeyValues = [budget: string, kind: string, member: string, item: string, start: number];
const valuesOf = ({ budget, kind, member, item, start }: AmountKey): KeyValues => [budget, kind, member, item, start];
const isOfKey = `(${keyColumns}) = (?1, ?2, ?3, ?4, ?5)`;
type StoredAmounts = Pick<HolderRow, "used" | "reserved" | "unknown">;
const insertUsed = `INSERT INTO used (${keyColumns}, amount, unknown, changed_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
type ReservationValues = [id: string, ...KeyValues, amount: number, expiresAt: number];
type UsedValues = [...KeyValues, amount: number, unknown: number, changedAt: number];

/** @throws ProxyError, or SQLite's error, if the file cannot be opened. */
export function openLedger(path: string, options: LedgerOptions): LocalLedger {
  if (statSync(path, { throwIfNoEntry: false })?.size === 0)
    options.warn(`The file ${path} was empty, so every budget starts again from 0.`);
  return new LocalLedger(path, options);
}

/**
 * The ledger in an SQLite file, which is asked without waiting. A file that turns out to be damaged is moved aside, whenever that
 * is: what can be read of it is taken over.
 */
export class LocalLedger implements Ledger {
  readonly #file: SqliteFile;
  readonly #now: () => number;
  #statements!: ReturnType<typeof statementsOf>;
  /** What a damaged file still told. */
  #rescued: UsedPeriod[] = [];

  constructor(path: string, { now, warn }: LedgerOptions) {
    this.#now = now;
    // By the ledger's own last change: with a clock set wrong at a start, all amounts would look over.
    const prepare = (database: Database) =>
      void database.run("DELETE FROM used WHERE changed_at_ms < min(?, (SELECT max(changed_at_ms) FROM used)) - ?", [
        ...[now(), keptFor],
      ]);
    const opened = (database: Database) => {
      this.#statements = statementsOf(database);
      if (this.#rescued.length > 0) this.#takeOver(database, this.#rescued.splice(0));
    };
    const rescue = (damaged: Database) => {
      try {
        this.#rescued = periodsIn(damaged);
      } catch {
        // the damage is there
      }
      return this.#rescued.length > 0 ? "what its budgets have used was taken over" : undefined;
    };
    this.#file = new SqliteFile(path, { migrations, content: ledgerContent, prepare, warn, opened, rescue });
    this.#ask(() => {});
  }

  reserve(budgets: readonly Budget[], subject: Subject, cost: Cost): ReserveResult {
    const entries = entriesFor(budgets, subject, this.#now());
    if (entries.length === 0) return { reservation: { id: "", entries } };
    return this.#ask((database) => inTransaction(database, () => this.#reserve(entries, cost, subject)));
  }

  settle({ id, entries }: Reservation, cost: Cost): void {
    if (entries.length === 0) return;
    this.#ask((database) =>
      inTransaction(database, () => {
        for (const { budget, key } of entries) {
          const amount = amountIn(budget, cost);
          this.#statements.add.run(
            ...valuesOf(key),
            storedAmount(budget, amount),
            amount === null ? 1 : 0,
            this.#now(),
          );
        }
        this.#statements.remove.run(id);
      }),
    );
  }

  release({ id, entries }: Reservation): void {
    if (entries.length > 0) this.#ask(() => this.#statements.remove.run(id));
  }

  states(budgets: readonly Budget[], subject: Subject): BudgetState[] {
    return this.read(entriesFor(budgets, subject, this.#now()));
  }

  read(entries: readonly LedgerEntry[]): BudgetState[] {
    // Each question outside of a transaction would look anew for what other processes have written.
    return this.#ask((database) =>
      inTransaction(database, () => {
        this.#dropExpired();
        return entries.map((entry) => stateOf(entry, this.#storedOf(entry), this.#now()));
      }),
    );
  }

  holders(budget: Budget, query: HolderQuery): HolderPage {
    return this.#ask((database) => {
      this.#dropExpired();
      return readHolders(database, budget, query, this.#now());
    });
  }

  /** What was used in all periods that are kept. */
  periods(): UsedPeriod[] {
    return this.#ask(periodsIn);
  }

  close(): void {
    this.#file.close();
  }

  #ask<T>(question: (database: Database) => T): T {
    try {
      return this.#file.use(question);
    } catch (thrown) {
      if (!isDamage(thrown)) throw thrown;
      return this.#file.use(question);
    }
  }

  #takeOver(database: Database, periods: readonly UsedPeriod[]): void {
    inTransaction(database, () => {
      for (const { key, amount, unknown } of periods)
        this.#statements.takeOver.run(...valuesOf(key), amount, unknown, this.#now());
    });
  }

  #reserve(entries: readonly LedgerEntry[], cost: Cost, subject: Subject): ReserveResult {
    this.#dropExpired();
    const id = crypto.randomUUID();
    const now = this.#now();
    const states: BudgetState[] = [];
    const rows: ReservationValues[] = [];
    for (const entry of entries) {
      const { budget, key } = entry;
      const stored = this.#storedOf(entry);
      const amount = amountIn(budget, cost);
      const before = stateOf(entry, stored, now);
      if (exceeds(before, amount, subject)) return { exceeded: before };
      const own = storedAmount(budget, amount);
      rows.push([id, ...valuesOf(key), own, now + reservationLifetime]);
      states.push(stateOf(entry, { ...stored, reserved: stored.reserved + own }, now));
    }
    for (const row of rows) this.#statements.insert.run(...row);
    return { reservation: { id, entries, states } };
  }

  #storedOf({ key }: LedgerEntry): StoredAmounts {
    return this.#statements.stored.get(...valuesOf(key))!;
  }

  /**
   * Reservations that end much later than a new one were made before the clock was set back. By how little clocks are corrected
   * every day, none of a running request is dropped.
   */
  #dropExpired(): void {
    this.#statements.expire.run(this.#now(), this.#now() + 2 * reservationLifetime);
  }
}

const inTransaction = <T>(database: Database, work: () => T): T => database.transaction(work).immediate();

function periodsIn(database: Database): UsedPeriod[] {
  const rows = database
    .query<Omit<UsedPeriod, "key"> & AmountKey, []>(`SELECT ${keyColumns}, amount, unknown FROM used`)
    .all();
  return rows.map(({ amount, unknown, ...key }) => ({ key, amount, unknown }));
}

const statementsOf = (database: Database) => ({
  stored: database.query<StoredAmounts, KeyValues>(
    `SELECT coalesce(sum(amount), 0) AS used, coalesce(sum(unknown), 0) AS unknown,
       (SELECT coalesce(sum(amount), 0) FROM reservations WHERE ${isOfKey}) AS reserved
       FROM used WHERE ${isOfKey}`,
  ),
  expire: database.query<null, [number, number]>(
    "DELETE FROM reservations WHERE expires_at_ms <= ? OR expires_at_ms > ?",
  ),
  insert: database.query<null, ReservationValues>(
    `INSERT INTO reservations (id, ${keyColumns}, amount, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ),
  remove: database.query<null, [string]>("DELETE FROM reservations WHERE id = ?"),
  add: database.query<null, UsedValues>(
    `${insertUsed} ON CONFLICT DO UPDATE SET amount = amount + excluded.amount, unknown = unknown + excluded.unknown,
     changed_at_ms = excluded.changed_at_ms`,
  ),
  takeOver: database.query<null, UsedValues>(
    `${insertUsed} ON CONFLICT DO UPDATE SET amount = max(amount, excluded.amount), unknown = max(unknown, excluded.unknown)`,
  ),
});

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
         SELECT member, item, amount AS used, 0 AS reserved, unknown FROM used
           WHERE budget = ?1 AND start = ?2 AND kind = ?3
         UNION ALL SELECT member, item, 0, amount, 0 FROM reservations
           WHERE budget = ?1 AND start = ?2 AND kind = ?3),
       sums AS (
         SELECT member, item, sum(used) AS used, sum(reserved) AS reserved, sum(unknown) AS unknown FROM amounts
           GROUP BY member, item)
       SELECT member, item, used, reserved, unknown, count(*) OVER () AS count
         FROM sums LEFT JOIN json_each(?4) AS own ON own.key = lower(member || '/' || item)
         WHERE used + reserved + unknown > 0 AND used >= ?5 * coalesce(value, ?6) ORDER BY CAST(used AS REAL) / coalesce(value, ?6) DESC, member, item LIMIT ?7 OFFSET ?8`,
    )
    .all(
      budgetId(budget),
      spanOf(budget.per, now).start,
      kind,
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
    const key =
      "budget TEXT NOT NULL, kind TEXT NOT NULL, member TEXT NOT NULL, item TEXT NOT NULL, start INTEGER NOT NULL";
    database.run(`CREATE TABLE used (${key}, amount INTEGER NOT NULL, unknown INTEGER NOT NULL,
      changed_at_ms INTEGER NOT NULL, PRIMARY KEY (${keyColumns})) WITHOUT ROWID`);
    database.run(`CREATE TABLE reservations (id TEXT NOT NULL, ${key}, amount INTEGER NOT NULL,
      expires_at_ms INTEGER NOT NULL, PRIMARY KEY (id, budget)) WITHOUT ROWID`);
    database.run(`CREATE INDEX reservations_by_key ON reservations (${keyColumns})`);
  },
];
