/** A look at the history's file that leaves no trace, also while a server writes into it. */
import { constants, Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { ProxyError } from "../errors";
import { sqliteCode, versionOf } from "./database";
import { migrations } from "./entry";

export interface IntegrityReport {
  rows: number;
  bytes: number;
}

/**
 * Undefined when there is no file yet.
 * @throws ProxyError `internal` with a sentence: it is damaged, of a newer version, or cannot be read.
 */
export function checkIntegrity(path: string): IntegrityReport | undefined {
  const bytes = sizeOf(path);
  if (bytes === undefined) return undefined;
  let database: Database | undefined;
  try {
    // Without a write-ahead log nobody writes: then it is read without locks, or SQLite would make a log of its own.
    const alone = sizeOf(`${path}-wal`) === undefined;
    const address = `${pathToFileURL(path).href}${alone ? "?immutable=1" : ""}`;
    database = new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
    return { rows: check(database, path), bytes };
  } catch (thrown) {
    const code = sqliteCode(thrown);
    if (code === undefined) throw thrown;
    throw new ProxyError("internal", `The history ${path} cannot be read (${code}).`, { cause: thrown });
  } finally {
    database?.close();
  }
}

function check(database: Database, path: string): number {
  const version = versionOf(database);
  if (version > migrations.length)
    throw new ProxyError("internal", `The history ${path} was written by a newer dragoman; use that one.`);
  const said = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
  if (said !== "ok")
    throw new ProxyError(
      "internal",
      `The history ${path} is damaged; the next start keeps it aside and begins a new one.`,
    );
  if (version === 0) return 0;
  return database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests").get()!.rows;
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
