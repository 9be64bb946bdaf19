/** Tables in Postgres, asked as `lib/sql.ts` has it. */
import type { SQL, TransactionSQL } from "bun";
import { type Statement, sql, type Tables } from "../lib/sql";
import type { Questions } from "./lane";

const now = sql`(extract(epoch FROM now()) * 1000)::bigint`;
const forUpdate = sql`FOR NO KEY UPDATE`;

export class PostgresTables implements Tables {
  readonly now = now;
  readonly forUpdate = forUpdate;
  readonly #questions: Questions;

  constructor(questions: Questions) {
    this.#questions = questions;
  }

  ask<Row>(statement: Statement): Promise<Row[]> {
    return this.#questions.ask((connection) => rowsOf<Row>(connection, statement));
  }

  transact<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return this.#questions.transact((connection) => work(new PostgresTransaction(connection)));
  }

  async lock(): Promise<void> {}
}

class PostgresTransaction implements Tables {
  readonly now = now;
  readonly forUpdate = forUpdate;

  constructor(readonly connection: TransactionSQL) {}

  ask<Row>(statement: Statement): Promise<Row[]> {
    return rowsOf<Row>(this.connection, statement);
  }

  transact<T>(work: (tables: Tables) => Promise<T>): Promise<T> {
    return work(this);
  }

  async lock(name: string): Promise<void> {
    await this.ask(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`dragoman ${name}`}, 0))`);
  }
}

async function rowsOf<Row>(connection: SQL, statement: Statement): Promise<Row[]> {
  const values = statement.values.map((value) => value ?? null);
  return [...((await connection.unsafe(statement.text("$"), values)) as Row[])];
}
