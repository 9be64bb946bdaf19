/** Keeps on this machine's disk what Postgres could not take, until it can. */
import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { openUnchanged } from "../books/history/integrity-check";
import { ProxyError } from "../lib/errors";
import { type FileContent, type Migration, openDatabase } from "../lib/sqlite";

/** Values of one kind, each under a key of its own. */
export interface DiskQueue<T> {
  /** Adds values in their order, all or none. One whose key is there already stays as it is. @throws The disk's error; ProxyError `unable` if the file is full. */
  add(values: readonly (readonly [key: string, value: T])[]): void;
  /** The oldest. */
  take(count: number): [key: string, value: T][];
  remove(keys: readonly string[]): void;
  readonly size: number;
}

type Kind = "request" | "settlement";

export interface DiskQueues {
  queue<T>(kind: Kind): DiskQueue<T>;
  close(): void;
}

const migrations: Migration[] = [
  (database: Database) => {
    database.run(`CREATE TABLE waiting (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
      UNIQUE (kind, key))`);
  },
];

const content: FileContent = {
  name: "file of what waits for the database",
  consequence: "requests in it are missing in the history and in the budgets",
};

/**
 * Bytes that the file may have when more is added: some 200,000 requests. What was used of budgets is worth more than the history,
 * so it has room beyond.
 */
const room: Record<Kind, number> = { request: 256 * 2 ** 20, settlement: 320 * 2 ** 20 };

/** @throws ProxyError, or SQLite's error, if the file cannot be opened. */
export function openDiskQueues(path: string, warn: (sentence: string) => void, most = room): DiskQueues {
  const database = openDatabase(path, { migrations, content, warn });
  const insert = database.query<null, [string, string, string]>(
    "INSERT INTO waiting (kind, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const select = database.query<{ key: string; value: string }, [string, number]>(
    "SELECT key, value FROM waiting WHERE kind = ? ORDER BY id LIMIT ?",
  );
  const remove = database.query<null, [string, string]>("DELETE FROM waiting WHERE kind = ? AND key = ?");
  const count = database.query<{ size: number }, [string]>("SELECT count(*) AS size FROM waiting WHERE kind = ?");
  const usedPages = database.query<{ bytes: number }, []>(
    "SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
  );
  return {
    queue: (kind) => ({
      add: database.transaction((values) => {
        if (usedPages.get()!.bytes > most[kind]) throw full(most[kind]);
        for (const [key, value] of values) insert.run(kind, key, JSON.stringify(value));
      }).immediate,
      take: (limit) => select.all(kind, limit).map(({ key, value }) => [key, JSON.parse(value)]),
      remove: database.transaction((keys: readonly string[]) => {
        for (const key of keys) remove.run(kind, key);
      }).immediate,
      get size() {
        return count.get(kind)!.size;
      },
    }),
    close: () => database.close(),
  };
}

const full = (bytes: number) =>
  new ProxyError(
    "unable",
    `The file of what waits for the database has ${Math.round(bytes / 2 ** 20)} MiB and takes no more.`,
  );

/** How many values wait in a file, without changing it; 0 if there is none. @throws SQLite's error */
export function countWaiting(path: string): number {
  if (!existsSync(path)) return 0;
  using database = openUnchanged(path);
  return database.query<{ size: number }, []>("SELECT count(*) AS size FROM waiting").get()!.size;
}
