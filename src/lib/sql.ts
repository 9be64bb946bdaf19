/**
 * Statements of SQL with their values, written once for SQLite and Postgres. Bun's own client speaks to both, and was not taken: with
 * its adapter for SQLite (Bun 1.4.5) a question that is asked while a transaction is open becomes part of it and is rolled back with
 * it, no connection can be reserved, and a lookup takes six times as long as with bun:sqlite.
 */

/** Made by `sql`. A value stands between each two texts. */
export class Statement {
  constructor(
    readonly texts: readonly string[],
    readonly values: readonly unknown[],
  ) {}

  /** @param mark What precedes the number of a value: `$` in Postgres, `?` in SQLite. */
  text(mark: "$" | "?"): string {
    return this.texts.reduce((before, next, at) => `${before}${mark}${at}${next}`);
  }
}

/** A statement, or a part of one. Parts that are statements are put in; everything else is a value. */
export function sql(given: TemplateStringsArray, ...parts: unknown[]): Statement {
  const texts = [given[0]!];
  const values: unknown[] = [];
  for (const [at, part] of parts.entries()) {
    const next = given[at + 1]!;
    if (part instanceof Statement) {
      texts[texts.length - 1] += part.texts[0]!;
      texts.push(...part.texts.slice(1));
      values.push(...part.values);
      texts[texts.length - 1] += next;
    } else {
      texts.push(next);
      values.push(part);
    }
  }
  return new Statement(texts, values);
}

/** SQL without values that is part of the program, such as the name of a column. */
export const words = (text: string): Statement => new Statement([text], []);

/** Tables in either database. Their names begin with `dragoman.`, which is a schema in Postgres and the file in SQLite. */
export interface Tables {
  /** @throws ProxyError `unable` if the database cannot be asked now; otherwise its own error. */
  ask<Row>(statement: Statement): Promise<Row[]>;
  /** Asks in a transaction, which is rolled back if `work` throws. @throws As `ask` does. */
  transact<T>(work: (tables: Tables) => Promise<T>): Promise<T>;
  /** Lets no other transaction that asks for a lock of this name go on before this one has ended. */
  lock(name: string): Promise<void>;
  /** The present by the clock of the database, Unix ms, which decides for all servers what has expired. */
  readonly now: Statement;
  /** What a SELECT ends with whose rows nobody else is to change before the transaction has ended. */
  readonly forUpdate: Statement;
}

/** A whole number as a number of JavaScript: Bun's client for Postgres makes a text of a `bigint`. */
export const asNumber = (column: string): Statement => words(`CAST(${column} AS double precision)`);
