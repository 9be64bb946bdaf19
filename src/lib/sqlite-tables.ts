/** Tables in an SQLite file, which several processes may use: a server, and commands. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { failureReason, ProxyError } from "./errors";
import { type Statement, sql, type Tables } from "./sql";
import { type FileOptions, isBusy, SqliteFile, sqliteCode } from "./sqlite";
import { Turns } from "./turns";

type SqliteTablesOptions = Pick<FileOptions, "migrations" | "prepare" | "content" | "warn">;

/** Milliseconds that another process may hold the file, and between two tries. */
const [patienceMs, pauseMs] = [5_000, 20];

/** SQLite itself waits with the thread that serves everybody, so it is not to wait. */
const waitingElsewhere: Pick<FileOptions, "tries" | "opened"> = {
  tries: 1,
  opened: (database) => database.run("PRAGMA busy_timeout = 0"),
};

/** The text of a statement as SQLite reads it. */
export const inFile = (text: string): string => text.replaceAll("dragoman.", "");

export class SqliteTables implements Tables {
  readonly now = sql`CAST(unixepoch('subsec') * 1000 AS INTEGER)`;
  // A transaction has the whole file.
  readonly forUpdate = sql``;
  readonly #path: string;
  readonly #options: SqliteTablesOptions;
  /** One connection: what is asked while a transaction is open would be part of it. */
  readonly #turns = new Turns(1);
  #file: SqliteFile | undefined;

  /** The file is opened, and made, with the first question. */
  constructor(path: string, options: SqliteTablesOptions) {
    this.#path = path;
    this.#options = options;
  }

  async lock(): Promise<void> {}

  ask<Row>(statement: Statement): Promise<Row[]> {
    return this.#turns.run(() => this.#patiently((database) => rowsOf<Row>(database, statement)));
  }

  transact<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      const database = await this.#patiently((opened) => {
        opened.run("BEGIN IMMEDIATE");
        return opened;
      });
      const ask = async <Row>(statement: Statement) => rowsOf<Row>(database, statement);
      const inside: Tables = {
        now: this.now,
        forUpdate: this.forUpdate,
        ask,
        lock: this.lock,
        transact: (more) => more(inside),
      };
      try {
        const result = await work(inside);
        database.run("COMMIT");
        return result;
      } catch (thrown) {
        if (database.inTransaction) database.run("ROLLBACK");
        throw explained(thrown);
      }
    });
  }

  close(): void {
    this.#file?.close();
  }

  async #patiently<T>(work: (database: Database) => T): Promise<T> {
    const deadline = performance.now() + patienceMs;
    for (;;)
      try {
        this.#file ??= new SqliteFile(this.#path, { ...this.#options, ...waitingElsewhere });
        return this.#file.use(work);
      } catch (thrown) {
        if (!isBusy(thrown) || performance.now() > deadline) throw explained(thrown);
        await Bun.sleep(pauseMs);
      }
  }
}

function rowsOf<Row>(database: Database, statement: Statement): Row[] {
  const values = statement.values.map((value) => (typeof value === "boolean" ? Number(value) : (value ?? null)));
  return database.query<Row, SQLQueryBindings[]>(inFile(statement.text("?"))).all(...(values as SQLQueryBindings[]));
}

function explained(thrown: unknown): unknown {
  if (sqliteCode(thrown) === undefined || sqliteCode(thrown)?.startsWith("SQLITE_CONSTRAINT")) return thrown;
  return new ProxyError(
    "unable",
    `The file of members cannot be used now (${failureReason(thrown)}). Try again in a moment.`,
    {
      code: "members_away",
      status: 503,
      headers: { "retry-after": "5" },
      cause: thrown,
    },
  );
}
