/**
 * The history in Postgres. Rows are gathered for a moment and inserted together. What the database cannot take goes to a file of
 * this machine, and follows when the database is back; a row that arrives twice is stored once.
 */
import { ProxyError } from "../errors";
import { dayMs, hourMs } from "../format";
import { cut, type Entry } from "../history/entry";
import type { History, HistoryOptions } from "../history/history";
import { pageOf } from "../history/page";
import type { Source } from "../history/sql";
import { largestSessionsOf, statisticsOf } from "../history/statistics";
import { isAwayError, sqlState } from "./away";
import type { Postgres } from "./connection";
import type { DiskQueue } from "./disk-queue";
import { countStored, selected, storedAfter, storedBounds, storedRequest } from "./request-queries";
import { addPartitions, insertRows, removeOldDays } from "./requests";
import { addUpPeriods, atOneMoment, canceled, questionMs } from "./statistics";

export interface PostgresHistoryOptions extends Omit<HistoryOptions, "monotonic"> {
  postgres: Postgres;
  /** For rows that wait for the database. @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<Entry>;
  /** Whether this server prunes: one of a team does. Read at each use. */
  isLeader(): boolean;
}

export interface PostgresHistory extends History {
  flush(): Promise<boolean>;
  /** After `close`: writes to the database what waits on the disk, as far as that is possible. */
  finish(): Promise<void>;
}

/** Milliseconds that a row waits for others. */
const gatherMs = 100;
const maxRowsAtOnce = 200;
/** Milliseconds between two tries while the database is away. */
const retryMs = 1_000;
/** Rows that are kept in memory if neither the database nor the disk takes them. */
const maxQueued = 10_000;
/** Milliseconds that statistics may take. */
const queryTimeoutMs = 30_000;
const pruneEvery = hourMs;
/** Milliseconds between two times that what is over is added up. */
const addUpEvery = hourMs / 6;
/** Milliseconds until the first, when a server that starts has other things to do. */
const firstAddUpAfter = 20_000;

/** Never throws: a onDisk that cannot be opened is reported, and rows then wait in memory. */
export function openPostgresHistory(options: PostgresHistoryOptions): PostgresHistory {
  const { postgres, retentionDays, maxRows, warn, now = Date.now } = options;
  const queued: Entry[] = [];
  let onDisk: DiskQueue<Entry> | undefined;
  let timer: Timer | undefined;
  let diskTimer: Timer | undefined;
  let writing: Promise<void> | undefined;
  let failing = false;
  let lost = 0;
  /** How many entries ever came and left the queue, in their order. */
  let [come, left] = [0, 0];
  /** Those who ask: what came before them has to be written first. */
  let askers: { before: number; go(): void }[] = [];
  let warnedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  const report = (sentence: string) => {
    if (now() - warnedAt < 60_000) return;
    warnedAt = now();
    warn(sentence);
  };
  const openedQueue = (): DiskQueue<Entry> => {
    onDisk ??= options.openQueue();
    return onDisk;
  };
  const schedule = (ms: number) => {
    if (closed) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      void write();
    }, ms).unref();
  };
  /** While the database is away, rows are on the disk before it is tried again. */
  const toDiskSoon = () => {
    diskTimer ??= setTimeout(() => {
      diskTimer = undefined;
      if (failing && !closed) toDisk();
    }, gatherMs).unref();
  };

  /** Writes what is queued and what waits on the disk. Only one write is under way at any time. */
  const write = (): Promise<void> => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
      if (queued.length > 0 || hasOnDisk()) schedule(failing ? retryMs : gatherMs);
    });
    return writing;
  };
  const leave = (count: number) => {
    left += count;
    for (const { before, go } of askers) if (left >= before) go();
    askers = askers.filter(({ before }) => left < before);
  };
  /** Waits for the entries that are queued now, however many come meanwhile, or until the database does not take them. */
  const written = async (): Promise<void> => {
    if (queued.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    askers.push({ before: come, go: resolve });
    await Promise.race([promise, write()]);
  };
  const writeAll = async (): Promise<void> => {
    try {
      while (queued.length > 0) {
        const entries = queued.slice(0, maxRowsAtOnce);
        await store(entries);
        // Some may have gone to the disk meanwhile, and others may have come: only what was stored leaves.
        const stored = new Set(entries);
        const others = queued.filter((entry) => !stored.has(entry));
        const count = queued.length - others.length;
        queued.splice(0, queued.length, ...others);
        leave(count);
      }
      while (hasOnDisk()) {
        const rows = onDisk!.take(maxRowsAtOnce);
        await store(rows.map(([, entry]) => entry));
        onDisk?.remove(rows.map(([id]) => id));
      }
      if (failing) warn("The database takes the request history again.");
      failing = false;
    } catch (thrown) {
      failing = true;
      toDisk();
      report(
        `The request history cannot be written to the database (${reasonOf(thrown)}); ${onDisk?.size ?? queued.length} entries wait${lost > 0 ? `, and ${lost} are lost` : ""}. Requests are not affected.`,
      );
    }
  };
  /** A row that the database rejects would hold up all others, so it is reported and left out. */
  const store = async (entries: Entry[]): Promise<void> => {
    try {
      await insertRows(postgres, entries, options.now?.());
    } catch (thrown) {
      if (isAwayError(thrown)) throw thrown;
      if (entries.length === 1) return warn(`A request could not be added to the history (${reasonOf(thrown)}).`);
      for (const entry of entries) await store([entry]);
    }
  };
  const hasOnDisk = () => onDisk !== undefined && onDisk.size > 0;
  const toDisk = () => {
    if (queued.length === 0) return;
    try {
      openedQueue().add(queued.map((entry) => [entry.request_id, entry]));
      left += queued.length;
      queued.length = 0;
    } catch (thrown) {
      report(`The request history cannot be kept on this machine's disk either (${reasonOf(thrown)}).`);
    }
  };

  const ask = <T>(question: Parameters<typeof postgres.ask<T>>[0]): Promise<T> =>
    answered(() => postgres.ask(question, queryTimeoutMs));
  const answered = async <T>(read: () => Promise<T>): Promise<T> => {
    // The answer includes entries that are still queued.
    await written();
    try {
      return await read();
    } catch (thrown) {
      if (thrown instanceof ProxyError) throw thrown;
      if (sqlState(thrown) === canceled) {
        const sentence = `The answer takes longer than ${questionMs / 1_000} seconds. Ask for fewer days, one key or one member.`;
        throw new ProxyError("timeout", sentence, { cause: thrown });
      }
      throw new ProxyError("internal", "The request history cannot be read now; see dragoman's log for the reason.", {
        cause: thrown,
      });
    }
  };
  /** Days that end before it are too old. Unix ms, by the clock of the database unless another one is given. */
  const oldestKept = async (): Promise<number> => {
    if (options.now) return now() - retentionDays() * dayMs;
    const [row] = await postgres.ask((sql) => sql<{ at: number }[]>`SELECT extract(epoch FROM now())::float8 AS at`);
    return row!.at * 1_000 - retentionDays() * dayMs;
  };
  const prune = async () => {
    if (!options.isLeader()) return;
    try {
      await removeOldDays(postgres, await oldestKept(), maxRows());
      await addPartitions(postgres, [now(), now() + dayMs]);
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The request history could not be pruned (${reasonOf(thrown)}).`);
    }
  };
  let isAddingUp = false;
  const addUp = async () => {
    if (!options.isLeader() || isAddingUp) return;
    isAddingUp = true;
    try {
      await addUpPeriods(postgres, options.now?.(), () => options.isLeader() && !closed);
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The request history could not be added up (${reasonOf(thrown)}).`);
    }
    isAddingUp = false;
  };
  const askOnce = <T>(question: (source: Source) => Promise<T>, signal?: AbortSignal): Promise<T> =>
    answered(() => atOneMoment(postgres, question, { signal }));
  const list: History["list"] = (filters, limit, cursor) =>
    askOnce((source) => pageOf(source, selected, filters, limit, cursor));
  const statistics: History["statistics"] = (filters, by, signal) =>
    askOnce((source) => statisticsOf(source, filters, by), signal);

  try {
    // Rows of an earlier run may wait.
    if (openedQueue().size > 0) schedule(0);
  } catch (thrown) {
    warn(`Requests that end while the database is away are kept in memory only (${reasonOf(thrown)}).`);
  }
  const pruning = setInterval(prune, pruneEvery).unref();
  const addingUp = setInterval(addUp, addUpEvery).unref();
  const firstPruning = setTimeout(prune, 1_000).unref();
  const firstAddingUp = setTimeout(addUp, firstAddUpAfter).unref();

  return {
    add(entry) {
      if (closed) return;
      if (queued.length < maxQueued) {
        queued.push(cut(entry));
        come += 1;
      } else lost += 1;
      if (failing) toDiskSoon();
      if (queued.length >= maxRowsAtOnce && !failing) void write();
      else schedule(failing ? retryMs : gatherMs);
    },
    async flush() {
      const last = come;
      await written();
      if (hasOnDisk()) await write();
      return left >= last && !hasOnDisk();
    },
    list,
    after: (id, limit) => ask((sql) => storedAfter(sql, id, limit)),
    get: (requestId) => ask((sql) => storedRequest(sql, requestId)),
    count: () => ask(countStored),
    oldest: async () => (await ask(storedBounds)).first ?? undefined,
    lastOf: async (filters) => (await list(filters, 1)).items[0]?.started_at_ms,
    totals: async (filters) => (await statistics(filters, [])).totals,
    statistics,
    largestSessions: (filters, count) => askOnce((source) => largestSessionsOf(source, filters, count)),
    prune,
    get queued() {
      return queued.length + (onDisk?.size ?? 0);
    },
    get degraded() {
      return failing || postgres.isAway;
    },
    close() {
      closed = true;
      for (const each of [timer, diskTimer, pruning, addingUp, firstPruning, firstAddingUp]) clearTimeout(each);
      // The rows of a write that is under way are kept too, because it may fail.
      toDisk();
    },
    async finish() {
      while (hasOnDisk() && !failing) await write();
      onDisk = undefined;
    },
  };
}

const reasonOf = (thrown: unknown): string => {
  const { cause } = thrown instanceof ProxyError ? thrown.details : {};
  const reason = cause instanceof Error ? cause : thrown;
  return (reason instanceof Error ? reason.message : String(reason)).replace(/\.$/, "");
};
