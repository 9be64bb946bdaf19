/** The connections of one server to Postgres. */
import { SQL, type TransactionSQL } from "bun";
import { databaseAway, isAwayError } from "./away";
import { CircuitBreaker } from "./circuit-breaker";

export interface Postgres {
  /** The pool, which may lead through PgBouncer. */
  readonly sql: SQL;
  /** The last question found no database. */
  readonly isAway: boolean;
  /** Milliseconds since the database answered. */
  readonly silence: number;
  /**
   * Asks the database.
   * @throws ProxyError `unable` with the code `database_away` if it cannot be used; otherwise Postgres' own error.
   */
  ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs?: number): Promise<T>;
  /** Asks by one connection of its own, for session locks, which belong to a connection. */
  askDirect<T>(question: (sql: SQL) => Promise<T>, timeoutMs?: number): Promise<T>;
  /**
   * Asks in a transaction, which is rolled back if `work` throws.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   */
  transact<T>(work: (sql: TransactionSQL) => Promise<T>, timeoutMs?: number, isChange?: boolean): Promise<T>;
  /**
   * Listens by another connection of its own, also after that was lost.
   * @param listening Called each time that it begins: what was announced before is lost.
   * @returns A function that ends it.
   * @throws ProxyError as `ask` does.
   */
  listen(channel: string, heard: (payload: string) => void, listening: () => void): Promise<() => void>;
  /** Calls back each time that the database answers again. */
  whenBack(listener: () => void): void;
  /** Opens the connections anew that belong to `askDirect` and `listen`. */
  replaceDirect(): void;
  close(): Promise<void>;
}

export interface PostgresOptions {
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
export function connectPostgres({ url, directUrl, lostDirect = () => {} }: PostgresOptions): Postgres {
  const backListeners: (() => void)[] = [];
  const pool = new CircuitBreaker({
    open: () =>
      new SQL(url, {
        database: databaseOf(url),
        max: maxConnections,
        connectionTimeout,
        idleTimeout: 60,
        // A pooler gives each transaction another connection, which does not know statements that were prepared on the last one.
        prepare: directUrl === undefined,
      }),
    connections: maxConnections,
    back: () => {
      for (const listener of backListeners) listener();
    },
    finishSeconds: 5,
  });
  const subscriptions = new Set<Subscription>();
  let closed = false;
  const direct = new CircuitBreaker({
    open: () =>
      new SQL(directUrl ?? url, {
        database: databaseOf(directUrl ?? url),
        max: 1,
        connectionTimeout,
        onclose: () => lostDirect(),
      }),
    connections: 1,
    replaced: () => {
      lostDirect();
      for (const subscription of subscriptions) void listenAgain(subscription);
    },
    // The locks of the old connection are to end.
    finishSeconds: 0,
  });

  const listenNow = async (subscription: Subscription): Promise<void> => {
    const { channel, heard, listening } = subscription;
    const begun = await direct.sql.listen(channel, heard, listening);
    subscription.end = () => void begun.unlisten().catch(() => {}); // it ended with its connection
  };
  /** Bun's client connects again by itself; this is for connections that were replaced. */
  const listenAgain = async (wanted: Subscription): Promise<void> => {
    const isWanted = () => subscriptions.has(wanted) && !closed;
    for (const sql = direct.sql; sql === direct.sql && isWanted(); await Bun.sleep(listenEvery))
      try {
        await listenNow(wanted);
        return;
      } catch {
        // The database is away, which the next question reports.
      }
  };

  return {
    get sql() {
      return pool.sql;
    },
    get isAway() {
      return pool.isAway;
    },
    get silence() {
      return pool.silence;
    },
    ask: (question, timeoutMs = defaultTimeoutMs) => pool.ask(question, timeoutMs),
    askDirect: (question, timeoutMs = defaultTimeoutMs) => direct.ask(question, timeoutMs),
    transact: (work, timeoutMs = defaultTimeoutMs, isChange = true) =>
      pool.ask((sql) => sql.begin((transaction) => work(transaction)) as Promise<never>, timeoutMs, isChange),
    async listen(channel, heard, listening) {
      const subscription: Subscription = { channel, heard, listening };
      subscriptions.add(subscription);
      const end = () => {
        subscriptions.delete(subscription);
        subscription.end?.();
      };
      try {
        await listenNow(subscription);
      } catch (thrown) {
        end();
        throw isAwayError(thrown) ? databaseAway(thrown, false) : thrown;
      }
      return end;
    },
    whenBack: (listener) => void backListeners.push(listener),
    replaceDirect: () => direct.replace(),
    async close() {
      closed = true;
      await Promise.all([pool.close(), direct.close()]);
    },
  };
}

interface Subscription {
  channel: string;
  heard(payload: string): void;
  listening(): void;
  /** Missing until it has begun. */
  end?(): void;
}

/** The address decides, although Bun's client prefers the variable `PGDATABASE`. */
const databaseOf = (url: string): string | undefined => decodeURIComponent(new URL(url).pathname.slice(1)) || undefined;
