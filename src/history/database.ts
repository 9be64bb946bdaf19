/** An SQLite file of our own: private, brought to the newest schema, and moved aside where it is damaged. */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ProxyError } from "../errors";

/** One step of the schema: the database's `user_version` is how many of them it has been through. */
export type Migration = (database: Database) => void;

export interface OpenOptions {
  /** Never changed once released, only added to. */
  migrations: Migration[];
  warn(sentence: string): void;
  /** How often a lock of another process is tried again, 50 ms apart and blocking; 20 unless told. */
  tries?: number;
}

/**
 * Opens the file, 0600, made and migrated where needed; one that is not a sound database is moved aside, and a new one
 * made. Throws a ProxyError when a newer version wrote it (it stays untouched) or it is not a file, else SQLite's error.
 */
export function openDatabase(path: string, options: OpenOptions): Database {
  makePrivate(path);
  const identity = fileIdentity(path);
  try {
    return openSound(path, options);
  } catch (error) {
    if (!isDamage(error)) throw error;
    moveAside(path, identity, options.warn);
    makePrivate(path);
    return openSound(path, options);
  }
}

/** SQLite gives -wal and -shm the mode of the file itself. */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  // A pipe would be waited for.
  if (!statSync(path).isFile()) throw new ProxyError("internal", `${path} is not a file.`);
  for (const file of [path, ...companions(path)]) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if (process.platform !== "win32" && mode & 0o077) chmodSync(file, 0o600);
  }
}

function openSound(path: string, { migrations, tries = 20 }: OpenOptions): Database {
  const database = new Database(path, { readwrite: true, create: true, strict: true });
  try {
    database.run("PRAGMA busy_timeout = 100");
    // While another process makes the same file even this may have to wait longer than the timeout.
    const version = insist(tries, () => versionOf(database));
    if (version > migrations.length)
      throw new ProxyError(
        "internal",
        `${path} was written by a newer dragoman (schema ${version}, this one knows ${migrations.length}).`,
      );
    // The switch answers BUSY at once while another process opens the same file, whatever the timeout.
    insist(tries, () => database.run("PRAGMA journal_mode = WAL"));
    for (const pragma of ["synchronous = NORMAL", "trusted_schema = OFF", "foreign_keys = ON"])
      database.run(`PRAGMA ${pragma}`);
    while (insist(tries, () => versionOf(database)) < migrations.length)
      insist(tries, () => migrate(database, migrations));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** One step, whole or not at all. The version is read again inside, as another process may just have done it. */
function migrate(database: Database, migrations: Migration[]): void {
  database
    .transaction(() => {
      const version = versionOf(database);
      if (version >= migrations.length) return;
      migrations[version]!(database);
      database.run(`PRAGMA user_version = ${version + 1}`);
    })
    .immediate();
}

/** How many steps of the schema it has been through. */
export function versionOf(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()!.user_version;
}

function insist<T>(tries: number, work: () => T): T {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || attempt >= tries) throw error;
      Bun.sleepSync(50);
    }
  }
}

/**
 * Renames the file and its companions to `<name>.corrupt-<ms>`, unless another process has done so already: then the
 * path leads to another file than `identity`. Every connection of ours must be closed.
 */
export function moveAside(path: string, identity: string | undefined, warn: (sentence: string) => void): void {
  if (fileIdentity(path) !== identity) return;
  const aside = `${path}.corrupt-${Date.now()}`;
  // The companions first: a write-ahead log beside a new file would be replayed into it.
  for (const file of [...companions(path), path])
    if (fileIdentity(file))
      renameSync(
        file,
        file.replace(path, () => aside),
      );
  warn(`The request history was damaged; it is kept as ${aside}, and a new one begins.`);
}

function companions(path: string): string[] {
  return [`${path}-wal`, `${path}-shm`];
}

/** Which file a path leads to now, or undefined when none; SQLite goes on writing into one that was removed. */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error) ?? "");
}

/** Whether it is worth while to open the database again later. */
export function mayPass(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED|FULL|IOERR)/.test(sqliteCode(error) ?? "");
}

export function isDamage(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error) ?? "");
}

/** SQLite's own name for what went wrong; undefined when it was not SQLite. */
export function sqliteCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : undefined;
}
