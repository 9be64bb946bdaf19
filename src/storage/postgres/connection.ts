/** The connections of one server to Postgres, and what its errors mean. */
import { SQL, type TransactionSQL } from "bun";
import { codeOf, ProxyError } from "../../errors";

export interface Postgres {
  /** The pool, which may lead through PgBouncer. */
  readonly sql: SQL;
  /** One connection of its own, for what belongs to a connection: `LISTEN` and session locks. */
  readonly direct: SQL;
  /** The last question found no database. */
  readonly isAway: boolean;
  /** Milliseconds since the database answered. */
  readonly silence: number;
  /**
   * Asks the database.
   * @throws ProxyError `unable` with the code `database_away` if it cannot be reached; otherwise Postgres' own error.
   */
  ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs?: number): Promise<T>;
  /** The same by the direct connection. */
  askDirect<T>(question: (sql: SQL) => Promise<T>, timeoutMs?: number): Promise<T>;
  /** The same in a transaction, which is rolled back if `work` throws. */
  transact<T>(work: (sql: TransactionSQL) => Promise<T>, timeoutMs?: number): Promise<T>;
  close(): Promise<void>;
}

export interface PostgresOptions {
  /** `postgres://…` */
  url: string;
  /** The address without a pooler, if `url` leads to one. */
  directUrl?: string;
  /** Called with each connection that `direct` lost: its session locks are gone. */
  lostDirect?(): void;
}

/** Connections in the pool. With the direct one and that of `LISTEN`, a server has ten at most. */
const maxConnections = 8;
/** Seconds until an attempt to connect is given up. */
const connectionTimeout = 5;
/** Milliseconds between two questions to a database that does not answer. */
const probeEvery = 1_000;
/** Milliseconds that a question may take. */
const defaultTimeoutMs = 5_000;

/** Connects with the first question. */
export function connectPostgres({ url, directUrl, lostDirect = () => {} }: PostgresOptions): Postgres {
  // A pooler gives each transaction another connection, which does not know statements that were prepared on the last one.
  const sql = new SQL(url, {
    max: maxConnections,
    connectionTimeout,
    idleTimeout: 60,
    prepare: directUrl === undefined,
  });
  const direct = new SQL(directUrl ?? url, { max: 1, connectionTimeout, onclose: () => lostDirect() });
  let isAway = false;
  let answeredAt = performance.now();
  /** Until then nobody else waits for a database that does not answer. */
  let silentUntil = Number.NEGATIVE_INFINITY;

  const observed = async <T>(work: () => Promise<T>, timeoutMs: number): Promise<T> => {
    if (performance.now() < silentUntil) throw databaseAway(new SlowDatabase("it has not answered for a while"));
    // While it is silent, one question at a time finds out whether it is back.
    if (isAway && silentUntil > Number.NEGATIVE_INFINITY) silentUntil = performance.now() + timeoutMs;
    try {
      const answer = await withinTime(work(), timeoutMs);
      isAway = false;
      answeredAt = performance.now();
      silentUntil = Number.NEGATIVE_INFINITY;
      return answer;
    } catch (thrown) {
      if (!isAwayError(thrown)) throw thrown;
      silentUntil = thrown instanceof SlowDatabase ? performance.now() + probeEvery : Number.NEGATIVE_INFINITY;
      isAway = true;
      throw databaseAway(thrown);
    }
  };

  return {
    sql,
    direct,
    get isAway() {
      return isAway;
    },
    get silence() {
      return performance.now() - answeredAt;
    },
    ask: (question, timeoutMs = defaultTimeoutMs) => observed(() => question(sql), timeoutMs),
    askDirect: (question, timeoutMs = defaultTimeoutMs) => observed(() => question(direct), timeoutMs),
    transact: (work, timeoutMs = defaultTimeoutMs) =>
      observed(() => sql.begin((transaction) => work(transaction)) as Promise<never>, timeoutMs),
    async close() {
      await Promise.allSettled([sql.close({ timeout: 1 }), direct.close({ timeout: 0 })]);
    },
  };
}

class SlowDatabase extends Error {
  readonly code = "ERR_POSTGRES_CONNECTION_TIMEOUT";
}

/** A server that disappeared without closing its connections is noticed by the time that an answer takes. */
async function withinTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SlowDatabase(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Whether an error says that there is no database to ask, now. The classes 08 (connection) and 57P (shutting down, starting)
 * and 53 (out of connections, memory, disk) are those of Postgres' appendix "Error Codes"; 25006 is a replica that may not write.
 */
export function isAwayError(thrown: unknown): boolean {
  if (thrown instanceof ProxyError) return thrown.details.code === awayCode;
  const code = codeOf(thrown);
  if (
    /^ERR_POSTGRES_(?:CONNECTION|IDLE_TIMEOUT|LIFETIME)|^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)
  )
    return true;
  return /^(?:08|57P|53|25006)/.test(sqlState(thrown) ?? "");
}

/** Postgres' own code of an error, such as `23505`; undefined if the error is not the server's. */
export function sqlState(thrown: unknown): string | undefined {
  const state = thrown instanceof Error && "errno" in thrown ? thrown.errno : undefined;
  return typeof state === "string" && /^[0-9A-Z]{5}$/.test(state) ? state : undefined;
}

const awayCode = "database_away";

/** @param so What follows from it. */
export const databaseAway = (cause: unknown, so = "nothing was changed") =>
  new ProxyError("unable", `The database cannot be reached now, so ${so}. Try again when it is back.`, {
    code: awayCode,
    status: 503,
    headers: { "retry-after": "5" },
    cause,
  });

/** @param so What it means for the person if the database is away. */
export async function orAway<T>(work: Promise<T>, so: string): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw isAwayError(thrown) ? databaseAway(thrown, so) : thrown;
  }
}
