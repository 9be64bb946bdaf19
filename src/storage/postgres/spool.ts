/** Keeps on this machine's disk what Postgres could not take, until it can. */
import type { Database } from "bun:sqlite";
import { type Migration, openDatabase } from "../../history/database";
import type { Entry } from "../../history/entry";

export interface Spool {
  /** Adds rows of the history. A row that is there already stays as it is. @throws The disk's error. */
  add(entries: readonly Entry[]): void;
  /** The oldest rows. */
  take(count: number): Entry[];
  remove(entries: readonly Entry[]): void;
  readonly size: number;
  close(): void;
}

const migrations: Migration[] = [
  (database: Database) => {
    database.run("CREATE TABLE entries (id INTEGER PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, entry TEXT NOT NULL)");
  },
];

/** @throws ProxyError, or SQLite's error, if the file cannot be opened. */
export function openSpool(path: string, warn: (sentence: string) => void): Spool {
  const database = openDatabase(path, { migrations, warn });
  const insert = database.query<null, [string, string]>(
    "INSERT INTO entries (request_id, entry) VALUES (?, ?) ON CONFLICT DO NOTHING",
  );
  const select = database.query<{ entry: string }, [number]>("SELECT entry FROM entries ORDER BY id LIMIT ?");
  const remove = database.query<null, [string]>("DELETE FROM entries WHERE request_id = ?");
  const count = database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM entries");
  const addAll = database.transaction((entries: readonly Entry[]) => {
    for (const entry of entries) insert.run(entry.request_id, JSON.stringify(entry));
  });
  const removeAll = database.transaction((entries: readonly Entry[]) => {
    for (const { request_id } of entries) remove.run(request_id);
  });
  return {
    add: (entries) => addAll.immediate(entries),
    take: (limit) => select.all(limit).map(({ entry }) => JSON.parse(entry)),
    remove: (entries) => removeAll.immediate(entries),
    get size() {
      return count.get()!.rows;
    },
    close: () => database.close(),
  };
}
