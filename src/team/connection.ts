/** The connections of one server to Postgres. */
import { SQL, type TransactionSQL } from "bun";
import { CircuitBreaker } from "./circuit-breaker";
import { Lane, type Questions } from "./lane";
import { settings } from "./settings";

interface PostgresOptions {
  /** `postgres://…` */
  url: string;
  /** The address without a pooler, if `url` leads to one. */
  directUrl?: string;
  /** Called with each connection of its own that was lost: its session locks are gone. */
  lostDirect?(): void;
}

/** Connections for requests, and for everything else, at most. With the direct one, a server has nine. */
const connections = { requests: 4, pages: 4 };
/** Seconds until an attempt to connect is given up: less than a question may take, so that its own error is heard. */
const connectionTimeout = 3;

/** Asks the database what pages and commands ask; `requests` is for what requests need. */
export class Postgres implements Questions {
  /** What a request waits for, and what keeps a server working. Pages, which may ask much, never take these connections. */
  readonly requests: Questions;
  readonly #breaker: CircuitBreaker;
  readonly #requests: Lane;
  readonly #pages: Lane;
  readonly #directBreaker: CircuitBreaker;
  readonly #direct: Lane;

  constructor({ url, directUrl, lostDirect = () => {} }: PostgresOptions) {
    const common = { database: databaseOf(url), connectionTimeout };
    // A pooler gives each transaction another connection, which does not know statements that were prepared on the last one, and
    // refuses most settings.
    const prepare = directUrl === undefined;
    const pooled = { ...common, prepare, idleTimeout: 60, ...(prepare && { connection: settings }) };
    const open = () => new SQL(url, { ...pooled, max: 1 });
    this.#breaker = new CircuitBreaker({ open });
    const lane = { breaker: this.#breaker, open };
    this.#requests = new Lane({ ...lane, connections: connections.requests, finishSeconds: 5 });
    // As long as statistics may take, which others may have to wait for.
    this.#pages = new Lane({ ...lane, connections: connections.pages, finishSeconds: 35, patienceMs: 35_000 });
    this.requests = this.#requests;
    const address = directUrl ?? url;
    const direct = { ...common, database: databaseOf(address), connection: settings, max: 1 };
    this.#directBreaker = new CircuitBreaker({ open: () => new SQL(address, direct) });
    this.#direct = new Lane({
      breaker: this.#directBreaker,
      open: () => new SQL(address, { ...direct, onclose: () => lostDirect() }),
      connections: 1,
      replaced: lostDirect,
      // The locks of the old connection are to end.
      finishSeconds: 0,
    });
  }

  /** It cannot be reached. */
  get isAway(): boolean {
    return this.#breaker.isAway;
  }

  /** Milliseconds since the database answered. */
  get silence(): number {
    return this.#breaker.silence;
  }

  /**
   * Asks the database.
   * @throws ProxyError `unable` with the code `database_away` or `database_busy` if it cannot be asked now; otherwise Postgres' own
   * error.
   */
  ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs?: number): Promise<T> {
    return this.#pages.ask(question, timeoutMs);
  }

  /** Asks by one connection of its own, for session locks, which belong to a connection. */
  askDirect<T>(question: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#direct.ask(question);
  }

  /**
   * Asks in a transaction, which is rolled back if `work` throws.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   */
  transact<T>(work: (sql: TransactionSQL) => Promise<T>, timeoutMs?: number, isChange?: boolean): Promise<T> {
    return this.#pages.transact(work, timeoutMs, isChange);
  }

  async close(): Promise<void> {
    for (const breaker of [this.#breaker, this.#directBreaker]) breaker.close();
    await Promise.all([this.#requests, this.#pages, this.#direct].map((lane) => lane.close()));
  }
}

/** The address decides, although Bun's client prefers the variable `PGDATABASE`. */
const databaseOf = (url: string): string | undefined => decodeURIComponent(new URL(url).pathname.slice(1)) || undefined;
