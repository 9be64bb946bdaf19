/** Removes rows that are too old or too many, in steps so small that no request waits for them. */
import type { Database } from "bun:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { isBusy } from "./database";

export interface PruneParts {
  /** Works on the database that the history uses now. */
  use<T>(work: (database: Database) => T): T;
  /** The history is closed; nothing may be done. */
  closed(): boolean;
  /** Requests that started before it are removed, Unix ms. */
  oldest: number;
  maxRows: number;
}

/** Rows removed in one step: about a millisecond, and longer when SQLite checkpoints its log. */
const atOnce = 100;
const busyPauseMs = 50;
/** Another program may lock the file for some seconds. After so many tries the next prune goes on. */
const maxBusy = 100;

/** @throws SQLite's own error. */
export async function pruneRows(parts: PruneParts): Promise<void> {
  await removeSteps(parts, "started_at_ms < $bound ORDER BY started_at_ms", parts.oldest);
  if (parts.closed()) return;
  const bound = parts.use((database) => lastTooMany(database, parts.maxRows));
  if (bound !== undefined) await removeSteps(parts, "id <= $bound ORDER BY id", bound);
}

async function removeSteps({ use, closed }: PruneParts, which: string, bound: number): Promise<void> {
  const sql = `DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE ${which} LIMIT ${atOnce})`;
  let busy = 0;
  while (!closed()) {
    try {
      if (use((database) => withoutWaiting(database, () => database.query(sql).run({ bound }).changes)) < atOnce)
        return;
      await wait(0);
    } catch (error) {
      if (!isBusy(error) || ++busy === maxBusy) throw error;
      await wait(busyPauseMs);
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
