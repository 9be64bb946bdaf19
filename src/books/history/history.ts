/** The request history: writes, queries and pruning on a file that may be locked, removed or damaged at any time. */

import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import type { Awaitable } from "../../lib/awaitable";
import { failureReason, ProxyError } from "../../lib/errors";
import { dayMs } from "../../lib/format";
import { type FileContent, isDamage, SqliteFile } from "../../lib/sqlite";
import { cut, type Entry, type Row } from "./entry";
import type { Filters } from "./filters";
import { migrations, prepareHistory } from "./migrations";
import type { HistoryPage } from "./page";
import type { PortionFilters, PortionSum } from "./portions";
import type { PromptOrder, PromptPage } from "./prompts";
import { countRows, openPruning } from "./prune";
import { HistoryReader } from "./reader";
import type { Input, Output, ReaderTasks } from "./reader-tasks";
import { findRow, insertEntries, oldestStart, rowsAfter, warnOfEntry } from "./rows";
import { nextPeriods } from "./sqlite-rollup";
import type { Dimension, Group, Statistics } from "./statistics";
import { openSteadyClock } from "./steady-clock";
import { type KeptRatio, keepTokenRatio, readTokenRatios } from "./token-ratios";
import { noTotals, type Totals } from "./totals";
import { WriteBehind } from "./write-behind";

export type { Entry, Row } from "./entry";
export type { Filters } from "./filters";
export type { HistoryPage as Page } from "./page";
export type { PromptPage, PromptPart, PromptSums } from "./prompts";
export type { Dimension, Group, Statistics } from "./statistics";
export type { Totals } from "./totals";

/** The history of requests. Its errors affect no request: only queries throw, a ProxyError. */
export interface History {
  /** Queues an entry, which is written a moment later. */
  add(entry: Entry): void;
  /** Writes all queued entries now; true when all are where queries find them. */
  flush(): Awaitable<boolean>;
  /** @param cursor The `next_cursor_id` of the page before; without it, the newest rows. */
  list(filters: Filters, limit: number, cursor?: number): Awaitable<HistoryPage>;
  /** The rows with larger ids, the oldest first: to read the whole history once. */
  after(id: number, limit: number): Awaitable<Row[]>;
  get(requestId: string): Awaitable<Row | undefined>;
  count(): Awaitable<number>;
  /** When the oldest request in the history started, Unix ms. */
  oldest(): Awaitable<number | undefined>;
  /** When the newest request that passes the filters started, Unix ms. */
  lastOf(filters: Filters): Awaitable<number | undefined>;
  /** The totals of all matching requests. */
  totals(filters: Filters): Promise<Totals>;
  /** @param by Two dimensions at most. */
  statistics(filters: Filters, by: Dimension[], signal?: AbortSignal): Promise<Statistics>;
  /**
   * Groups by session and model, in any order: those of the sessions with the most input whose cached part is known.
   * @param count Of how many sessions.
   */
  largestSessions(filters: Filters, count: number): Promise<Group[]>;
  /** What each prompt came to, by default the newest first. @param cursor The `next_cursor_id` of the page before. */
  prompts(filters: Filters, limit: number, cursor?: number, order?: PromptOrder): Promise<PromptPage>;
  /** What the prompts of these days were made of, by kind, tool and model, the dearest first. */
  portions(filters: PortionFilters): Promise<PortionSum[]>;
  /**
   * Removes rows that are too old or too many, in small steps, and adds up the hours that are over. Also runs a second after the start, and every hour. After
   * the clock has jumped ahead, rows become too old only when the jump has lasted for a day.
   */
  prune(): Promise<void>;
  /** What was learnt of how models count, the newest last. @throws The database's own error. */
  tokenRatios(): Awaitable<KeptRatio[]>;
  /** @throws The database's own error. */
  keepTokenRatio(ratio: KeptRatio): Awaitable<void>;
  /** Entries could not be written yet, or no history is kept at all. */
  readonly degraded: boolean;
  /** How many entries wait to be written. */
  readonly queued: number;
  /** How many entries nothing could keep, since the start. */
  readonly lost: number;
  close(): void;
}

/** The history in an SQLite file: what takes no time is answered without waiting. */
export interface LocalHistory extends History {
  flush(): boolean;
  list(filters: Filters, limit: number, cursor?: number): Promise<HistoryPage>;
  after(id: number, limit: number): Row[];
  get(requestId: string): Row | undefined;
  count(): number;
  oldest(): number | undefined;
  tokenRatios(): KeptRatio[];
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

const content: FileContent = { name: "request history", consequence: "a new history was started" };

/** Never throws. If no history can be kept, warns once and returns a history that keeps nothing. */
export function openHistory(path: string, options: HistoryOptions): LocalHistory {
  const { retentionDays, maxRows, warn, now = Date.now } = options;
  const clock = openClock(path, options);
  let connection: SqliteFile;
  try {
    const opened = (database: Database) => clock.start(newestStart(database));
    connection = new SqliteFile(path, { migrations, content, prepare: prepareHistory, warn, opened });
  } catch (error) {
    return noHistory(error, warn);
  }
  const reader = new HistoryReader();
  const pruning = openPruning({
    connection,
    path,
    warn,
    maxRows,
    // The file is opened first, because its newest row decides whether the clock is trusted.
    oldest: () => connection.use(clock.now) - retentionDays() * dayMs,
    async addUp() {
      const { hours } = await connection.use((database) => nextPeriods(database, now()));
      if (hours.length > 0) await read("addUp", now());
    },
  });
  /** Entries that were refused, each by itself. */
  let refused = 0;
  const queue = new WriteBehind<Entry>({
    warn,
    now,
    write(entries) {
      refused += connection.use((database) => insertEntries(database, entries, warn));
      pruning.count(entries.length);
    },
  });
  const ask = <T>(question: (database: Database) => T): T => {
    try {
      // The answer includes entries that are still queued.
      if (queue.gathering) queue.flush();
      return connection.use(question);
    } catch (error) {
      throw unreadable(error);
    }
  };
  const read = <Name extends keyof ReaderTasks>(task: Name, ...input: Input<Name>): Output<Name> =>
    connection.read((file) => reader.ask(file, task, ...input));
  const askReader = <Name extends keyof ReaderTasks>(task: Name, ...input: Input<Name>): Output<Name> => {
    const answer = async () => {
      if (queue.gathering) queue.flush();
      return await read(task, ...input);
    };
    return answer().catch((error) => {
      throw unreadable(error);
    }) as Output<Name>;
  };

  return {
    add(entry) {
      try {
        queue.add(cut(entry));
      } catch (error) {
        warnOfEntry(error, warn);
        refused += 1;
      }
    },
    flush: () => queue.flush(),
    list: (filters, limit, cursor) => askReader("page", filters, limit, cursor),
    after: (id, limit) => ask((database) => rowsAfter(database, id, limit)),
    get: (requestId) => ask((database) => findRow(database, requestId)),
    count: () => ask(countRows),
    oldest: () => ask(oldestStart),
    lastOf: async (filters) => (await askReader("page", filters, 1)).items[0]?.started_at_ms,
    totals: async (filters) => (await askReader("statistics", filters, [])).totals,
    statistics: (filters, by) => askReader("statistics", filters, by),
    largestSessions: (filters, count) => askReader("largestSessions", filters, count),
    prompts: (filters, limit, cursor, order) => askReader("prompts", filters, limit, cursor, order),
    portions: (filters) => askReader("portions", filters),
    prune: pruning.run,
    tokenRatios: () => connection.use(readTokenRatios),
    keepTokenRatio: (ratio) => connection.use((database) => keepTokenRatio(database, ratio, now())),
    get degraded() {
      return !connection.isOpen || queue.degraded;
    },
    get queued() {
      return queue.length;
    },
    get lost() {
      return queue.lost + refused;
    },
    close() {
      queue.close();
      pruning.close();
      reader.close();
      connection.close();
    },
  };
}

const unreadable = (cause: unknown) =>
  new ProxyError("internal", "The request history cannot be read now; see dragoman's log for the reason.", { cause });

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

/** The clock that decides which rows are too old. It starts when the newest row is known. */
function openClock(
  path: string,
  { retentionDays, now = Date.now, monotonic = () => performance.now() }: HistoryOptions,
) {
  const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  let steady: (() => number) | undefined;

  /**
   * The newest row's time, if it is so long ago that a wrong clock could make all rows look too old. If this clock also
   * dates the file's last change recently, the clock is trusted.
   */
  const doubtful = (newest: number | undefined): number | undefined => {
    const gap = (retentionDays() * dayMs) / 2;
    const writtenLately = writtenAt !== undefined && Math.abs(now() - writtenAt) < gap;
    return newest !== undefined && now() - newest > gap && !writtenLately ? newest : undefined;
  };

  return {
    start(newest: number | undefined) {
      steady ??= openSteadyClock({ now, monotonic, lastKnown: doubtful(newest) });
    },
    now: () => steady!(),
  };
}

function noHistory(error: unknown, warn: (sentence: string) => void): LocalHistory {
  warn(`No request history is kept (${failureReason(error)}); requests are not affected.`);
  const nothing = noTotals();
  let lost = 0;
  const noPage = async () => ({ items: [], next_cursor_id: null, has_more: false });
  return {
    add() {
      lost += 1;
    },
    flush: () => true,
    list: noPage,
    after: () => [],
    get: () => undefined,
    count: () => 0,
    oldest: () => undefined,
    lastOf: async () => undefined,
    totals: async () => nothing,
    statistics: async (_filters, by) => ({ by, totals: nothing, groups: [], others: null }),
    largestSessions: async () => [],
    prompts: noPage,
    portions: async () => [],
    prune: async () => {},
    tokenRatios: () => [],
    keepTokenRatio() {},
    degraded: true,
    queued: 0,
    get lost() {
      return lost;
    },
    close() {},
  };
}
