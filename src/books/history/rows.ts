/** Writes rows of the history, and reads single ones. */
import type { Database } from "bun:sqlite";
import { failureReason } from "../../lib/errors";
import { sqliteCode } from "../../lib/sqlite";
import { type Entry, insertEntry, type Row, valuesOf } from "./entry";
import { addedToPortions, portionColumns, portionRows } from "./portions";

const addPortions = `INSERT INTO portions (${portionColumns})
  VALUES (${portionColumns.replace(/\w+/g, "?")}) ${addedToPortions("portions")}`;

/** Inserts all entries or none, but skips an entry that the table rejects, since it would block all others. */
/** @returns How many entries SQLite refused; the others are written all or none. */
export function insertEntries(database: Database, entries: Entry[], warn: (sentence: string) => void): number {
  const statement = database.query(insertEntry);
  const added: Entry[] = [];
  let refused = 0;
  database
    .transaction(() => {
      for (const entry of entries) {
        try {
          if (statement.run(...valuesOf(entry)).changes > 0) added.push(entry);
        } catch (error) {
          if (!isEntryError(error)) throw error;
          warnOfEntry(error, warn);
          refused += 1;
        }
      }
      const portions = database.query(addPortions);
      for (const row of portionRows(added)) portions.run(...row);
    })
    .immediate();
  return refused;
}

export function warnOfEntry(error: unknown, warn: (sentence: string) => void): void {
  warn(`A request could not be added to the history (${failureReason(error)}).`);
}

function isEntryError(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === undefined || /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(code);
}

export function findRow(database: Database, request_id: string): Row | undefined {
  const sql = "SELECT * FROM requests WHERE request_id = $request_id";
  return database.query<Row, [{ request_id: string }]>(sql).get({ request_id }) ?? undefined;
}

/** The oldest first. */
export function rowsAfter(database: Database, id: number, limit: number): Row[] {
  const sql = "SELECT * FROM requests WHERE id > $id ORDER BY id LIMIT $limit";
  return database.query<Row, [{ id: number; limit: number }]>(sql).all({ id, limit });
}

export function oldestStart(database: Database): number | undefined {
  const sql = "SELECT min(started_at_ms) AS at FROM requests";
  return database.query<{ at: number | null }, []>(sql).get()!.at ?? undefined;
}
