/** Removes rows that are too old or too many, in steps so small that no request waits for them. */

import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { FreshRuns } from "../../lib/awaitable";
import { failureReason } from "../../lib/errors";
import { hourMs } from "../../lib/format";
import { isBusy, type SqliteFile } from "../../lib/sqlite";
import { portionDay } from "./portions";

interface PruneParts {
  connection: SqliteFile;
  path: string;
  warn(sentence: string): void;
  maxRows(): number;
  /** Requests that started before it are removed, Unix ms. */
  oldest(): number;
  /** Adds up the hours that are over. */
  addUp(): Promise<void>;
}

interface Pruning {
  run(): Promise<void>;
  /** Reports that rows were written. */
  count(rows: number): void;
  close(): void;
}

/** Soon, so that a short-lived process prunes too. */
const pruneAfterMs = 1_000;
const pruneEveryMs = hourMs;
/** A busy hour must not outgrow `maxRows` by more than this. */
const pruneEveryRows = 1_000;
/** Bytes. */
const walLimit = 64 * 1024 * 1024;
/** Rows removed in one step: about a millisecond, and longer when SQLite checkpoints its log. */
const atOnce = 100;
const busyPauseMs = 50;
/** Another program may lock the file for some seconds. After so many tries the next prune goes on. */
const maxBusy = 100;

/** Prunes soon, then every hour, and after many rows. */
export function openPruning(parts: PruneParts): Pruning {
  const { connection, warn, addUp } = parts;
  let written = 0;

  const pruneAll = async () => {
    written = 0;
    try {
      await removeRows(parts);
      if (!connection.isClosed) await addUp();
      warnOfLog(parts);
    } catch (error) {
      if (!connection.isClosed && !isBusy(error))
        warn(`The request history could not be pruned (${failureReason(error)}).`);
    }
  };
  // One that is under way may have begun with other limits.
  const runs = new FreshRuns(pruneAll);
  const run = () => runs.run();
  const soon = setTimeout(run, pruneAfterMs).unref();
  const hourly = setInterval(run, pruneEveryMs).unref();

  return {
    run,
    count(rows) {
      written += rows;
      if (written >= pruneEveryRows && !runs.isRunning) void run();
    },
    close() {
      clearTimeout(soon);
      clearInterval(hourly);
    },
  };
}

async function removeRows({ connection, oldest, maxRows }: PruneParts): Promise<void> {
  await removeSteps(connection, "started_at_ms < $bound ORDER BY started_at_ms", oldest());
  if (connection.isClosed) return;
  const day = portionDay(oldest());
  await inTurn(connection, (database) => database.query("DELETE FROM portions WHERE day < ?").run(day));
  const bound = connection.use((database) => lastTooMany(database, maxRows()));
  if (bound !== undefined) await removeSteps(connection, "id <= $bound ORDER BY id", bound);
}

async function removeSteps(connection: SqliteFile, which: string, bound: number): Promise<void> {
  const sql = `DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE ${which} LIMIT ${atOnce}) RETURNING id`;
  const remove = (database: Database) => database.query(sql).all({ bound }).length;
  let removed = atOnce;
  while (removed === atOnce && !connection.isClosed) removed = await inTurn(connection, remove);
}

/** Runs `work` in a transaction, after other work had its turn. */
async function inTurn<T>(connection: SqliteFile, work: (database: Database) => T): Promise<T> {
  for (let busy = 1; ; busy += 1) {
    await wait(busy === 1 ? 0 : busyPauseMs);
    try {
      return connection.use((database) =>
        withoutWaiting(database, () => database.transaction(() => work(database)).immediate()),
      );
    } catch (error) {
      if (!isBusy(error) || busy === maxBusy) throw error;
    }
  }
}

/** SQLite's own wait for a lock blocks the event loop; here it is better to try again later. */
function withoutWaiting<T>(database: Database, work: () => T): T {
  const { timeout } = database.query<{ timeout: number }, []>("PRAGMA busy_timeout").get()!;
  database.run("PRAGMA busy_timeout = 0");
  try {
    return work();
  } finally {
    database.run(`PRAGMA busy_timeout = ${timeout}`);
  }
}

/** The newest id among the rows to remove. Counted from the oldest row, because few are removed and many kept. */
function lastTooMany(database: Database, maxRows: number): number | undefined {
  const offset = countRows(database) - maxRows - 1;
  if (offset < 0) return undefined;
  const sql = "SELECT id FROM requests ORDER BY id LIMIT 1 OFFSET $offset";
  return database.query<{ id: number }, [{ offset: number }]>(sql).get({ offset })?.id;
}

export function countRows(database: Database): number {
  return database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests").get()!.rows;
}

function warnOfLog({ path, warn }: PruneParts): void {
  const size = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (size > walLimit) warn(`Another program keeps ${path} open for reading, so ${path}-wal grows.`);
}
