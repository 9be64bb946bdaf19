/** Checks the history's file without changing anything, also while a server writes into it. */
import { constants, Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { codeOf, ProxyError } from "../../lib/errors";
import { isDamage, versionOf } from "../../lib/sqlite";
import { migrations } from "./migrations";

interface IntegrityReport {
  rows: number;
  bytes: number;
}

/**
 * Undefined when there is no file yet.
 * @throws ProxyError `internal` when the file is damaged, was written by a newer version, or cannot be read.
 */
export function checkIntegrity(path: string): IntegrityReport | undefined {
  let database: Database | undefined;
  try {
    const bytes = sizeOf(path);
    if (bytes === undefined) return undefined;
    database = openUnchanged(path);
    return { rows: check(database, path), bytes };
  } catch (thrown) {
    if (isDamage(thrown)) throw damaged(path);
    const code = codeOf(thrown);
    if (code === "") throw thrown;
    throw new ProxyError("internal", `The history ${path} cannot be read (${code}). ${without}`, { cause: thrown });
  } finally {
    database?.close();
  }
}

/** Whether another file of the data folder is whole; undefined when there is none yet. @throws The system's or SQLite's error */
export function isSound(path: string): boolean | undefined {
  if (sizeOf(path) === undefined) return undefined;
  let database: Database | undefined;
  try {
    database = openUnchanged(path);
    return isWhole(database);
  } catch (thrown) {
    if (isDamage(thrown)) return false;
    throw thrown;
  } finally {
    database?.close();
  }
}

/** Opens a database so that nothing in its folder changes. @throws SQLite's error */
export function openUnchanged(path: string): Database {
  // Without a write-ahead log no process writes. `immutable` then keeps SQLite from creating a log.
  const unused = sizeOf(`${path}-wal`) === undefined;
  const address = `${pathToFileURL(path).href}${unused ? "?immutable=1" : ""}`;
  return new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

function check(database: Database, path: string): number {
  const version = versionOf(database);
  if (version > migrations.length)
    throw new ProxyError(
      "internal",
      `The history ${path} was written by a newer dragoman; use that version. ${without}`,
    );
  if (!isWhole(database)) throw damaged(path);
  if (version === 0) return 0;
  return database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests").get()!.rows;
}

const isWhole = (database: Database): boolean =>
  database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check === "ok";

const without = "Requests are served without it.";

const damaged = (path: string) =>
  new ProxyError("internal", `The history ${path} is damaged. The next start moves it aside and starts a new history.`);

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
