/** The request history: writes, queries and pruning on a file that may be locked, removed or damaged at any time. */
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { ProxyError } from "../errors";
import { openAggregate, type Totals } from "./aggregate";
import { openColumnCache } from "./column-cache";
import { fileIdentity, isBusy, isDamage, mayPass, moveAside, openDatabase, sqliteCode } from "./database";
import { cut, type Entry, insertEntry, migrations, type Row } from "./entry";
import { type Filters, type HistoryPage, readPage } from "./page";
import { countRows, pruneRows } from "./prune";
import { type Dimension, type Statistics, statisticsOf } from "./statistics";
import { openSteadyClock } from "./steady-clock";
import { openWriteBehind } from "./write-behind";

export type { Totals } from "./aggregate";
export type { Entry, Row } from "./entry";
export type { Filters, HistoryPage as Page } from "./page";
export type { Dimension, Group, Statistics } from "./statistics";

/** The history of requests. Its errors affect no request: only queries throw, a ProxyError `internal`. */
export interface History {
  /** Queues an entry, which is written to disk a moment later. */
  add(entry: Entry): void;
  /** Writes all queued entries now; true when all are on disk. */
  flush(): boolean;
  /** @param cursor The `next_cursor_id` of the page before; without it, the newest rows. */
  list(filters: Filters, limit: number, cursor?: number): HistoryPage;
  get(requestId: string): Row | undefined;
  count(): number;
  /** When the oldest request in the history started, Unix ms. */
  oldest(): number | undefined;
  /** When the newest request of the account started, Unix ms. */
  lastOf(accountKey: string): number | undefined;
  /** The totals of all matching requests. */
  totals(filters: Filters): Promise<Totals>;
  /** @param by Two dimensions at most. */
  statistics(filters: Filters, by: Dimension[]): Promise<Statistics>;
  /**
   * Removes rows that are too old or too many, in small steps. Also runs a second after the start, and every hour. After
   * the clock has jumped ahead, rows become too old only when the jump has lasted for a day.
   */
  prune(): Promise<void>;
  /** Entries could not be written yet, or no history is kept at all. */
  readonly degraded: boolean;
  close(): void;
}

export interface HistoryOptions {
  /** Both are read at each prune. */
  retentionDays(): number;
  maxRows(): number;
  warn(sentence: string): void;
  /** Unix ms. */
  now?: () => number;
  /** A monotonic clock, ms. */
  monotonic?: () => number;
}

const dayMs = 86_400_000;
/** Soon, so that a short-lived process prunes too. */
const pruneAfterMs = 1_000;
const pruneEveryMs = 3_600_000;
/** A busy hour must not outgrow `maxRows` by more than this. */
const pruneEveryRows = 1_000;
/** Bytes. */
const walLimit = 64 * 1024 * 1024;

/** Never throws. If no history can be kept, warns once and returns a history that keeps nothing. */
export function openHistory(path: string, options: HistoryOptions): History {
  const { retentionDays, maxRows, warn, now = Date.now, monotonic = () => performance.now() } = options;
  const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  let steadyNow: (() => number) | undefined;
  let database: Database | undefined;
  let identity: string | undefined;
  let closed = false;

  const open = (tries?: number): Database => {
    const opened = openDatabase(path, { migrations, warn, tries });
    identity = fileIdentity(path);
    steadyNow ??= openSteadyClock({ now, monotonic, lastKnown: doubtful(newestStart(opened)) });
    return opened;
  };

  /**
   * The newest row's time, if it is so long ago that a wrong clock could make all rows look too old. If this clock also
   * dates the file's last change recently, the clock is trusted.
   */
  const doubtful = (newest: number | undefined): number | undefined => {
    const gap = (retentionDays() * dayMs) / 2;
    const writtenLately = writtenAt !== undefined && Math.abs(now() - writtenAt) < gap;
    return newest !== undefined && now() - newest > gap && !writtenLately ? newest : undefined;
  };

  try {
    database = open();
  } catch (error) {
    // After a passing error (a lock, a full disk) the next write tries again.
    if (!mayPass(error)) return noHistory(error, warn);
  }

  /** Works on the file that is at the path now. A file that was removed or damaged is replaced. */
  const use = <T>(work: (database: Database) => T): T => {
    if (closed) throw new Error("the history is closed");
    if (database && fileIdentity(path) !== identity) release();
    database ??= open(1);
    try {
      return work(database);
    } catch (error) {
      if (isDamage(error)) {
        release();
        moveAside(path, identity, warn);
      }
      throw error;
    }
  };

  const release = () => {
    database?.close();
    database = undefined;
  };

  const ask = <T>(question: (database: Database) => T): T => {
    try {
      // The answer includes entries that are still queued.
      if (queue.gathering) queue.flush();
      return use(question);
    } catch (error) {
      throw new ProxyError("internal", "The request history cannot be read now; see dragoman's log for the reason.", {
        cause: error,
      });
    }
  };

  const columns = openColumnCache(ask);

  let written = 0;
  const queue = openWriteBehind<Entry>({
    warn,
    now,
    write(entries) {
      use((database) => insert(database, entries, warn));
      written += entries.length;
      if (written >= pruneEveryRows) void prune();
    },
  });

  let pruning: Promise<void> | undefined;
  const prune = (): Promise<void> => {
    written = 0;
    pruning ??= pruneAll().finally(() => {
      pruning = undefined;
    });
    return pruning;
  };

  const pruneAll = async () => {
    try {
      // `use` opens the file first, because its newest row decides whether the clock is trusted.
      const oldest = use(() => steadyNow!()) - retentionDays() * dayMs;
      await pruneRows({ use, closed: () => closed, oldest, maxRows: maxRows() });
      const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
      if (wal > walLimit) warn(`Another program keeps ${path} open for reading, so ${path}-wal grows.`);
    } catch (error) {
      if (!closed && !isBusy(error)) warn(`The request history could not be pruned (${reasonOf(error)}).`);
    }
  };

  const soon = setTimeout(prune, pruneAfterMs).unref();
  const hourly = setInterval(prune, pruneEveryMs).unref();

  return {
    add(entry) {
      try {
        queue.add(cut(entry));
      } catch (error) {
        warnOfEntry(error, warn);
      }
    },
    flush: () => queue.flush(),
    list: (filters, limit, cursor) => ask((database) => readPage(database, filters, limit, cursor)),
    get: (requestId) => ask((database) => findRow(database, requestId)),
    count: () => ask(countRows),
    oldest: () => ask(oldestStart),
    lastOf: (accountKey) => ask((database) => lastStart(database, accountKey)),
    totals: async (filters) => (await statisticsOf(columns, filters, [])).totals,
    statistics: (filters, by) => statisticsOf(columns, filters, by),
    prune,
    get degraded() {
      return database === undefined || queue.degraded;
    },
    close() {
      queue.close();
      closed = true;
      clearTimeout(soon);
      clearInterval(hourly);
      columns.clear();
      release();
    },
  };
}

function noHistory(error: unknown, warn: (sentence: string) => void): History {
  warn(`No request history is kept (${reasonOf(error)}); requests are not affected.`);
  return {
    add() {},
    flush: () => true,
    list: () => ({ items: [], next_cursor_id: null, has_more: false }),
    get: () => undefined,
    count: () => 0,
    oldest: () => undefined,
    lastOf: () => undefined,
    totals: async () => openAggregate().totals(),
    statistics: async (_filters, by) => ({ by, totals: openAggregate().totals(), groups: [], others: null }),
    prune: async () => {},
    degraded: true,
    close() {},
  };
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
}

/** Inserts all entries or none, but skips an entry that the table rejects, since it would block all others. */
function insert(database: Database, entries: Entry[], warn: (sentence: string) => void): void {
  const statement = database.query(insertEntry);
  database
    .transaction(() => {
      for (const entry of entries) {
        try {
          statement.run(entry);
        } catch (error) {
          if (!isEntryError(error)) throw error;
          warnOfEntry(error, warn);
        }
      }
    })
    .immediate();
}

function warnOfEntry(error: unknown, warn: (sentence: string) => void): void {
  warn(`A request could not be added to the history (${reasonOf(error)}).`);
}

function isEntryError(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === undefined || /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(code);
}

function findRow(database: Database, request_id: string): Row | undefined {
  const sql = "SELECT * FROM requests WHERE request_id = $request_id";
  return database.query<Row, [{ request_id: string }]>(sql).get({ request_id }) ?? undefined;
}

function oldestStart(database: Database): number | undefined {
  const sql = "SELECT min(started_at_ms) AS at FROM requests";
  return database.query<{ at: number | null }, []>(sql).get()!.at ?? undefined;
}

export const lastStartQuery =
  "SELECT started_at_ms AS at FROM requests WHERE account_key = $key ORDER BY id DESC LIMIT 1";

function lastStart(database: Database, key: string): number | undefined {
  return database.query<{ at: number }, [{ key: string }]>(lastStartQuery).get({ key })?.at;
}

/** Undefined also if the file is damaged, which the next use finds out. */
function newestStart(database: Database): number | undefined {
  try {
    const sql = "SELECT started_at_ms AS at FROM requests ORDER BY id DESC LIMIT 1";
    return database.query<{ at: number }, []>(sql).get()?.at;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}
