/** Some connections to the database, for questions of one kind, and the line before them. */
import type { SQL, TransactionSQL } from "bun";
import { Turns } from "../lib/turns";
import {
  BusyDatabase,
  databaseAway,
  isAwayError,
  isUnanswered,
  isUnreachable,
  NotAsked,
  SlowDatabase,
  sqlState,
} from "./away";
import { type CircuitBreaker, withinTime } from "./circuit-breaker";

interface LaneOptions {
  breaker: CircuitBreaker;
  /** Opens one connection, with its first question. */
  open(): SQL;
  /** How many questions are asked at a time, each by a connection of its own. */
  connections: number;
  /** Milliseconds that a question waits for a connection, where that may be longer than its answer may take. */
  patienceMs?: number;
  /** Seconds that a question may take for which nobody waits any more, and those that are under way when connections are replaced. */
  finishSeconds: number;
  /** Called when others have taken the place of these connections. */
  replaced?(): void;
}

/** Milliseconds that a question may wait for a connection, and then for its answer. */
const defaultTimeoutMs = 5_000;

/** What asks the database. */
export type Questions = Pick<Lane, "ask" | "transact">;

/** The connections until all are replaced. */
interface Generation {
  /** A question that waits for its turn takes none of the database's time. */
  turns: Turns;
  /** Those that no question uses, the last one used at the end: Bun closes one that nobody uses for a while. */
  free: SQL[];
  /** A connection is opened when a question finds none free, as the database has few for all. */
  all: SQL[];
}

export class Lane {
  readonly #options: LaneOptions;
  #now: Generation;
  #closed = false;
  /** Replaced connections that still finish questions. */
  readonly #finishing = new Set<SQL>();

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#now = this.#begun();
    options.breaker.whenAway(() => this.#now.turns.end());
  }

  /**
   * @param timeoutMs How long it may wait for a connection, and then for the answer.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   * @throws ProxyError if the database cannot be asked now: it is away, or has too much to do; otherwise Postgres' own error.
   */
  async ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs = defaultTimeoutMs, isChange = false): Promise<T> {
    const { breaker } = this.#options;
    for (let isFirst = true; ; isFirst = false) {
      const { sql, of: asked } = await this.#connection(timeoutMs, isChange);
      const give = () => {
        asked.free.push(sql);
        asked.turns.give();
      };
      const work = Promise.try(() => question(sql));
      try {
        const answer = await withinTime(work, timeoutMs);
        breaker.answered();
        give();
        return answer;
      } catch (thrown) {
        const cause = thrown instanceof SlowDatabase ? await this.#whySlow(thrown) : thrown;
        // Its connection is still busy.
        if (cause instanceof BusyDatabase) void this.#whenFree(work, asked).finally(give);
        else give();
        if (!isAwayError(cause)) {
          if (sqlState(cause) !== undefined) breaker.answered();
          throw cause;
        }
        if (cause instanceof SlowDatabase) this.#replace(asked);
        if (isUnreachable(cause)) breaker.begin(cause);
        // Nothing was done, and the next connection may work: perhaps only this one was lost.
        if (isFirst && breaker.isAway && !isUnanswered(cause)) continue;
        throw databaseAway(cause, isChange);
      }
    }
  }

  /** Asks in a transaction, which is rolled back if `work` throws. @throws As `ask` does. */
  transact<T>(work: (sql: TransactionSQL) => Promise<T>, timeoutMs?: number, isChange = true): Promise<T> {
    return this.ask((sql) => sql.begin((transaction) => work(transaction)) as Promise<never>, timeoutMs, isChange);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#now.turns.end();
    for (const old of this.#finishing) void old.close({ timeout: 0 }).catch(() => {});
    const timeout = this.#options.finishSeconds > 0 ? 1 : 0;
    await Promise.allSettled(this.#now.all.map((sql) => sql.close({ timeout })));
  }

  #begun(): Generation {
    return { turns: new Turns(this.#options.connections), free: [], all: [] };
  }

  #opened({ all }: Generation): SQL {
    const sql = this.#options.open();
    all.push(sql);
    return sql;
  }

  /** @returns What is wrong: that the database has too much to do, or that it is away. */
  async #whySlow(thrown: SlowDatabase): Promise<SlowDatabase | BusyDatabase> {
    return (await this.#options.breaker.answers()) ? new BusyDatabase(thrown.message) : thrown;
  }

  /** Waits for the end of a question that nobody waits for any more. A dead connection reports no error, so it takes its time only. */
  async #whenFree(work: Promise<unknown>, asked: Generation): Promise<void> {
    const { promise: isLate, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, this.#options.finishSeconds * 1_000, true).unref();
    const isOver = () => false;
    if (await Promise.race([work.then(isOver, isOver), isLate])) this.#replace(asked);
    clearTimeout(timer);
  }

  /** New connections take the place of these, unless others have taken it already. */
  #replace(asked: Generation): void {
    if (asked !== this.#now || this.#closed) return;
    const { finishSeconds, replaced } = this.#options;
    this.#now = this.#begun();
    asked.turns.end();
    replaced?.();
    for (const sql of asked.all) {
      this.#finishing.add(sql);
      void sql.close({ timeout: finishSeconds }).finally(() => this.#finishing.delete(sql));
    }
  }

  /** @throws ProxyError if the database is away, or no connection is free in time. */
  async #connection(timeoutMs: number, isChange: boolean): Promise<{ sql: SQL; of: Generation }> {
    const patienceMs = Math.max(timeoutMs, this.#options.patienceMs ?? 0);
    const deadline = performance.now() + patienceMs;
    for (;;) {
      await this.#options.breaker.untilBack(isChange);
      const current = this.#now;
      const outcome = await current.turns.take(Math.max(0, deadline - performance.now()));
      if (outcome === "late") {
        const cause = new BusyDatabase(`no connection was free within ${patienceMs} ms`);
        throw databaseAway(new NotAsked(cause.message, { cause }), isChange);
      }
      if (outcome === "turn" && current === this.#now && !this.#options.breaker.isAway)
        return { sql: current.free.pop() ?? this.#opened(current), of: current };
      if (outcome === "turn") current.turns.give();
    }
  }
}
