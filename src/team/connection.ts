/** The connections of one server to Postgres. */
import { SQL, type TransactionSQL } from "bun";
import { databaseAway, isAwayError } from "./away";
import { CircuitBreaker } from "./circuit-breaker";

interface PostgresOptions {
  /** `postgres://…` */
  url: string;
  /** The address without a pooler, if `url` leads to one. */
  directUrl?: string;
  /** Called with each connection of its own that was lost: its session locks are gone. */
  lostDirect?(): void;
}

/** Connections in the pool. With the direct one and that of `LISTEN`, a server has ten at most. */
const maxConnections = 8;
/** Seconds until an attempt to connect is given up: less than a question may take, so that its own error is heard. */
const connectionTimeout = 3;
/** Milliseconds that a question may take, once it has a connection. */
const defaultTimeoutMs = 5_000;
/** Milliseconds between two tries to listen. */
const listenEvery = 500;

/** Connects with the first question. */
export class Postgres {
  readonly #pool: CircuitBreaker;
  readonly #direct: CircuitBreaker;
  readonly #backListeners: (() => void)[] = [];
  /** Missing until it listens. */
  #listen: (() => Promise<void>) | undefined;
  #closed = false;

  constructor({ url, directUrl, lostDirect = () => {} }: PostgresOptions) {
    const common = { database: databaseOf(url), connectionTimeout };
    // A pooler gives each transaction another connection, which does not know statements that were prepared on the last one.
    const prepare = directUrl === undefined;
    this.#pool = new CircuitBreaker({
      open: () => new SQL(url, { ...common, max: maxConnections, idleTimeout: 60, prepare }),
      connections: maxConnections,
      back: () => {
        for (const listener of this.#backListeners) listener();
      },
      finishSeconds: 5,
    });
    const address = directUrl ?? url;
    this.#direct = new CircuitBreaker({
      open: () => new SQL(address, { ...common, database: databaseOf(address), max: 1, onclose: () => lostDirect() }),
      connections: 1,
      replaced: () => {
        lostDirect();
        void this.#listenAgain();
      },
      // The locks of the old connection are to end.
      finishSeconds: 0,
    });
  }

  /** The pool, which may lead through PgBouncer. */
  get sql(): SQL {
    return this.#pool.sql;
  }

  /** The last question found no database. */
  get isAway(): boolean {
    return this.#pool.isAway;
  }

  /** Milliseconds since the database answered. */
  get silence(): number {
    return this.#pool.silence;
  }

  /**
   * Asks the database.
   * @throws ProxyError `unable` with the code `database_away` if it cannot be used; otherwise Postgres' own error.
   */
  ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs = defaultTimeoutMs): Promise<T> {
    return this.#pool.ask(question, timeoutMs);
  }

  /** Asks by one connection of its own, for session locks, which belong to a connection. */
  askDirect<T>(question: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#direct.ask(question, defaultTimeoutMs);
  }

  /**
   * Asks in a transaction, which is rolled back if `work` throws.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   */
  transact<T>(work: (sql: TransactionSQL) => Promise<T>, timeoutMs = defaultTimeoutMs, isChange = true): Promise<T> {
    const question = (sql: SQL) => sql.begin((transaction) => work(transaction)) as Promise<never>;
    return this.#pool.ask(question, timeoutMs, isChange);
  }

  /**
   * Listens by another connection of its own, also after that was lost. To be called once.
   * @param listening Called each time that it begins: what was announced before is lost.
   * @throws ProxyError as `ask` does.
   */
  async listen(channel: string, heard: (payload: string) => void, listening: () => void): Promise<void> {
    const listen = async () => void (await this.#direct.sql.listen(channel, heard, listening));
    this.#listen = listen;
    try {
      await listen();
    } catch (thrown) {
      this.#listen = undefined;
      throw isAwayError(thrown) ? databaseAway(thrown, false) : thrown;
    }
  }

  /** Calls back each time that the database answers again. */
  whenBack(listener: () => void): void {
    this.#backListeners.push(listener);
  }

  /** Opens the connections anew that belong to `askDirect` and `listen`. */
  replaceDirect(): void {
    this.#direct.replace();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#pool.close(), this.#direct.close()]);
  }

  /** Bun's client connects again by itself; this is for connections that were replaced. */
  async #listenAgain(): Promise<void> {
    const { sql } = this.#direct;
    while (sql === this.#direct.sql && !this.#closed)
      try {
        return await this.#listen?.();
      } catch {
        // The database is away, which the next question reports.
        await Bun.sleep(listenEvery);
      }
  }
}

/** The address decides, although Bun's client prefers the variable `PGDATABASE`. */
const databaseOf = (url: string): string | undefined => decodeURIComponent(new URL(url).pathname.slice(1)) || undefined;
