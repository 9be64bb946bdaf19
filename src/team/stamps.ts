/**
 * Tells a server what was changed in the tables that it has in memory: each change gives its table another stamp, which the database
 * does by itself (`schema/tables.sql`). Once a second a server reads the stamps, and whole the tables that have others than it knows.
 * So it does not matter whether what it finds is newer or older: after a failover or from a restored backup, it is what counts.
 */
import type { SQL, TransactionSQL } from "bun";
import { FreshRuns } from "../lib/awaitable";
import type { Logger } from "../lib/logger";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";

/** Tables that each server has in memory; of members only whether there ever was one. */
type FollowedTable = "config" | "members" | "accounts" | "sign_ins";

interface Follower {
  /** Missing while nothing was read. */
  stamp: string | undefined;
  /** What is being read may have been asked for before the newest change. */
  reads: FreshRuns<void>;
}

/** Milliseconds. */
const lookEvery = 1_000;

export class Stamps {
  readonly #postgres: Postgres;
  readonly #logger: Logger;
  readonly #followers = new Map<FollowedTable, Follower>();
  #timer: Timer | undefined;
  #closed = false;

  constructor(postgres: Postgres, logger: Logger) {
    this.#postgres = postgres;
    this.#logger = logger;
  }

  /** Reads a table now, and from then on whenever it was changed. @param read Reads all of it. @throws ProxyError */
  async follow(table: FollowedTable, read: () => Promise<void>): Promise<void> {
    const follower: Follower = {
      stamp: undefined,
      reads: new FreshRuns(async () => {
        // The stamp comes first: rows that are newer than it are read once more.
        const stamp = (await this.#read()).get(table);
        if (stamp !== undefined && stamp === follower.stamp) return;
        await read();
        follower.stamp = stamp;
      }),
    };
    this.#followers.set(table, follower);
    await follower.reads.run();
  }

  /** Follows until `close`. */
  start(): void {
    this.#timer = setInterval(() => void this.#look(), lookEvery).unref();
  }

  /** Reads a table now if it was changed. Whoever asks waits for two reads at most, however many others ask. @throws ProxyError `unable` */
  async catchUp(table: FollowedTable): Promise<void> {
    if (!this.#closed) await this.#followers.get(table)?.reads.run();
  }

  /**
   * The same after a change that is made, so that this server knows it too. Never throws: whoever made the change is not told that
   * it failed, and without an answer now the next look finds it.
   */
  async tryCatchUp(table: FollowedTable): Promise<void> {
    try {
      await this.catchUp(table);
    } catch (thrown) {
      this.#report(`Changes of ${table} in the database could not be read.`, thrown);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    try {
      const stamps = await this.#read();
      const changed = [...this.#followers].filter(([table, { stamp }]) => stamp !== stamps.get(table));
      await Promise.all(changed.map(([table]) => this.tryCatchUp(table)));
    } catch (thrown) {
      this.#report("The stamps of the database could not be read.", thrown);
    }
  }

  async #read(): Promise<Map<string, string>> {
    const rows = await this.#postgres.requests.ask(
      (sql: SQL) => sql<{ name: string; stamp: string }[]>`SELECT name, stamp::text AS stamp FROM dragoman.stamps`,
    );
    return new Map(rows.map(({ name, stamp }) => [name, stamp]));
  }

  #report(sentence: string, thrown: unknown): void {
    if (!isAwayError(thrown)) this.#logger.error(sentence, thrown);
  }
}

/** Lets nobody else change the table before the transaction has ended, so that what is counted in it stays so. */
export const lockTable = (sql: TransactionSQL, table: FollowedTable) =>
  sql`SELECT 1 FROM dragoman.stamps WHERE name = ${table} FOR UPDATE`;
