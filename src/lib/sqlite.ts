/** Opens SQLite files that only their owner can read, migrates them to the newest schema, and moves them aside if damaged. */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, ProxyError } from "./errors";

/** One step of the schema; the database's `user_version` is the number of steps done. */
export type Migration = (database: Database) => void;

/** What is lost with a file: `The ${name} was damaged. It was moved to …, and ${consequence}.` */
export interface FileContent {
  name: string;
  consequence: string;
}

interface OpenOptions {
  /** Released migrations never change; new ones are added at the end. */
  migrations: Migration[];
  /** For the warning when the file was damaged. */
  content: FileContent;
  /** Called after the migrations, each time the file is opened. */
  prepare?(database: Database): void;
  warn(sentence: string): void;
  /** How often to try while another process holds a lock, 50 ms apart and blocking; 20 by default. */
  tries?: number;
}

/**
 * Opens the file with mode 0600, and creates and migrates it where needed. A damaged file is moved aside and replaced
 * by a new one.
 * @throws ProxyError when a newer version wrote the file (it stays unchanged) or the path is not a file, else SQLite's error.
 */
export function openDatabase(path: string, options: OpenOptions): Database {
  makePrivate(path);
  const identity = fileIdentity(path);
  try {
    return openSound(path, options);
  } catch (error) {
    if (!isDamage(error)) throw error;
    moveAside(path, identity, options);
    makePrivate(path);
    return openSound(path, options);
  }
}

export interface FileOptions extends OpenOptions {
  /** Called each time the file was opened. */
  opened?(database: Database): void;
  /** Called with a database that is damaged, before its file is moved aside. @returns What is lost, if not `content.consequence`. */
  rescue?(damaged: Database): string | undefined;
}

/** Holds a file open that may be locked, removed or damaged at any time. */
export class SqliteFile {
  readonly #path: string;
  readonly #options: FileOptions;
  #database: Database | undefined;
  #identity: string | undefined;
  #closed = false;

  /** After a passing error (a lock, a full disk) the next use tries again. @throws Other errors. */
  constructor(path: string, options: FileOptions) {
    this.#path = path;
    this.#options = options;
    try {
      this.#open();
    } catch (error) {
      if (!mayPass(error)) throw error;
    }
  }

  get isOpen(): boolean {
    return this.#database !== undefined;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Works on the file that is at the path now. One that turns out to be damaged is moved aside, and the next use has a new one. */
  use<T>(work: (database: Database) => T): T {
    const present = this.#current();
    try {
      return work(present);
    } catch (error) {
      this.#removeIfDamaged(error);
      throw error;
    }
  }

  /** The same for work that another thread does on the file. */
  read<Answer extends Promise<unknown>>(work: (file: { path: string; identity: string }) => Answer): Answer {
    this.#current();
    const answer = work({ path: this.#path, identity: this.#identity! });
    return answer.catch((error) => {
      this.#removeIfDamaged(error);
      throw error;
    }) as Answer;
  }

  /** Closes the file for good. */
  close(): void {
    this.#closed = true;
    this.#release();
  }

  #open(tries = this.#options.tries): Database {
    const database = openDatabase(this.#path, { ...this.#options, tries });
    this.#database = database;
    this.#identity = fileIdentity(this.#path);
    this.#options.opened?.(database);
    return database;
  }

  #current(): Database {
    if (this.#closed) throw new Error(`${this.#path} is closed`);
    if (this.#database && fileIdentity(this.#path) !== this.#identity) this.#release();
    return this.#database ?? this.#open(1);
  }

  #removeIfDamaged(error: unknown): void {
    if (!isDamage(error)) return;
    const { content, rescue, warn } = this.#options;
    const consequence = (this.#database && rescue?.(this.#database)) ?? content.consequence;
    this.#release();
    moveAside(this.#path, this.#identity, { content: { ...content, consequence }, warn });
  }

  #release(): void {
    this.#database?.close();
    this.#database = undefined;
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
  // Opening a pipe would block.
  if (!statSync(path).isFile()) throw new ProxyError("internal", `${path} is not a file.`);
  for (const file of [path, ...companions(path)]) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if (process.platform !== "win32" && mode & 0o077) chmodSync(file, 0o600);
  }
}

function openSound(path: string, { migrations, prepare, tries = 20 }: OpenOptions): Database {
  const database = new Database(path, { readwrite: true, create: true, strict: true });
  try {
    database.run("PRAGMA busy_timeout = 100");
    // While another process creates the same file, even this read can take longer than the timeout.
    const version = retryBusy(tries, () => versionOf(database));
    if (version > migrations.length)
      throw new ProxyError(
        "internal",
        `${path} was written by a newer dragoman (schema ${version}, this one knows ${migrations.length}).`,
      );
    // Each removal gives its pages back to the file system. It takes effect in a new file only, before anything is in it.
    retryBusy(tries, () => database.run("PRAGMA auto_vacuum = FULL"));
    // While another process opens the same file, this fails with BUSY at once, whatever the timeout.
    retryBusy(tries, () => database.run("PRAGMA journal_mode = WAL"));
    for (const pragma of ["synchronous = NORMAL", "trusted_schema = OFF", "foreign_keys = ON"])
      database.run(`PRAGMA ${pragma}`);
    while (retryBusy(tries, () => versionOf(database)) < migrations.length)
      retryBusy(tries, () => migrate(database, migrations));
    if (prepare) retryBusy(tries, () => prepare(database));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Does one step in a transaction. The version is read again inside, because another process may just have done the step. */
/** Adds the columns that a table of an older version lacks. @param columns Their definitions, by their names. */
export function addColumns(database: Database, table: string, columns: ReadonlyMap<string, string>): void {
  const missing = () => {
    const rows = database.query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)").all(table);
    const present = new Set(rows.map(({ name }) => name));
    return [...columns].filter(([name]) => !present.has(name));
  };
  if (missing().length === 0) return;
  const add = database.transaction(() => {
    for (const [, definition] of missing()) database.run(`ALTER TABLE ${table} ADD COLUMN ${definition}`);
  });
  add.immediate();
}

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

/** The number of schema steps done. */
export function versionOf(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()!.user_version;
}

function retryBusy<T>(tries: number, work: () => T): T {
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
 * Renames the file, its -wal and its -shm to `<name>.corrupt-<ms>`, unless another process has already done so: then the
 * file at the path is not `identity` any more. All our connections to it must be closed.
 */
function moveAside(
  path: string,
  identity: string | undefined,
  { content, warn }: Pick<OpenOptions, "content" | "warn">,
): void {
  if (fileIdentity(path) !== identity) return;
  const aside = `${path}.corrupt-${Date.now()}`;
  // The -wal and -shm first: SQLite would replay an old log into a new file.
  for (const file of [...companions(path), path])
    if (fileIdentity(file))
      renameSync(
        file,
        file.replace(path, () => aside),
      );
  warn(`The ${content.name} was damaged. It was moved to ${aside}, and ${content.consequence}.`);
}

function companions(path: string): string[] {
  return [`${path}-wal`, `${path}-shm`];
}

/** Identifies the file at a path, undefined if there is none. Needed because SQLite keeps writing into a removed file. */
function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error) ?? "");
}

/**
 * Whether opening the database later may succeed. While the disk is full or the process has no files left, SQLite cannot open its
 * own files beside the database (CANTOPEN), and opens the database itself only for reading (READONLY).
 */
function mayPass(error: unknown): boolean {
  return /^(?:SQLITE_(?:BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY)|ENOSPC|EDQUOT|EIO|EMFILE|ENFILE)/.test(codeOf(error));
}

export function isDamage(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error) ?? "");
}

/** SQLite's code of the error; undefined when the error is not SQLite's. */
export function sqliteCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : undefined;
}
