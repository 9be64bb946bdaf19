/**
 * A circuit breaker around some connections to the database: while they lead nowhere, questions fail at once, and only a probe
 * asks.
 */
import type { SQL } from "bun";
import { Turns } from "../turns";
import { databaseAway, isAwayError, isUnanswered, isUnreachable, NotAsked, SlowDatabase, sqlState } from "./away";

interface CircuitBreakerOptions {
  open(): SQL;
  /** How many questions the connections take at a time. */
  connections: number;
  /** Called with the connections that take the place of others. */
  replaced?(sql: SQL): void;
  /** The database answers again. */
  back?(): void;
  /** Seconds that questions which are under way may take when their connections are replaced. */
  finishSeconds: number;
}

/** Milliseconds between two looks whether the database is back: at first, and at most. */
const [firstPause, longestPause] = [20, 500];
/** Milliseconds that a look may take. */
const probeTimeoutMs = 3_000;
/** Milliseconds that questions wait at the beginning, as most connections that are lost can be replaced at once. */
const waitMs = 250;

/** While only the probe asks. */
interface Outage {
  cause: unknown;
  /** Until then questions wait. */
  waitUntil: number;
  over: PromiseWithResolvers<void>;
}

/** Connects with the first question. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #sql: SQL;
  /** A question that waits for its turn takes none of the database's time. */
  #turns: Turns;
  /** Missing while questions are asked. */
  #outage: Outage | undefined;
  #isAway = false;
  #answeredAt = performance.now();
  #closed = false;
  /** Replaced connections that still finish questions. */
  readonly #finishing = new Set<SQL>();

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
    this.#sql = options.open();
    this.#turns = new Turns(options.connections);
  }

  /** The present connections. All are replaced when one does not answer, because a dead connection reports no error. */
  get sql(): SQL {
    return this.#sql;
  }

  /** The last question found no database. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Milliseconds since the database answered. */
  get silence(): number {
    return performance.now() - this.#answeredAt;
  }

  /**
   * @param timeoutMs From when the question has a connection. While all are busy it waits for as long as the database answers others.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   * @throws ProxyError if the database is away; otherwise Postgres' own error.
   */
  async ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs: number, isChange = false): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      const turn = await this.#untilTurn(timeoutMs, isChange);
      const asked = this.#sql;
      try {
        const answer = await withinTime(question(asked), timeoutMs);
        this.#answered();
        return answer;
      } catch (thrown) {
        if (!isAwayError(thrown)) {
          if (sqlState(thrown) !== undefined) this.#answered();
          throw thrown;
        }
        this.#isAway = true;
        this.#replaceSilent(asked, thrown);
        if (isUnreachable(thrown)) this.#begin(thrown);
        // Nothing was done, and the next connection may work: perhaps only this one was lost.
        if (isFirst && this.#outage && !isUnanswered(thrown)) continue;
        throw databaseAway(thrown, isChange);
      } finally {
        turn.give();
      }
    }
  }

  /** Opens new connections in place of these. */
  replace(): void {
    const { open, connections, replaced, finishSeconds } = this.#options;
    const old = this.#sql;
    this.#sql = open();
    this.#turns.end();
    this.#turns = new Turns(connections);
    replaced?.(this.#sql);
    this.#finishing.add(old);
    void old.close({ timeout: finishSeconds }).finally(() => this.#finishing.delete(old));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#turns.end();
    this.#outage?.over.resolve();
    this.#outage = undefined;
    const ends = [...this.#finishing].map((old) => old.close({ timeout: 0 }));
    await Promise.allSettled([this.#sql.close({ timeout: this.#options.finishSeconds > 0 ? 1 : 0 }), ...ends]);
  }

  #answered(): void {
    this.#answeredAt = performance.now();
    this.#isAway = false;
    if (!this.#outage) return;
    this.#outage.over.resolve();
    this.#outage = undefined;
    this.#options.back?.();
  }

  /** A question that gets no answer may have gone to a connection that is dead, as others would too. */
  #replaceSilent(asked: SQL, thrown: unknown): void {
    if (thrown instanceof SlowDatabase && asked === this.#sql && !this.#closed) this.replace();
  }

  #begin(cause: unknown): void {
    if (this.#outage || this.#closed) return;
    this.#outage = { cause, waitUntil: performance.now() + waitMs, over: Promise.withResolvers() };
    this.#turns.end();
    void this.#probe(this.#outage);
  }

  async #probe(outage: Outage): Promise<void> {
    for (let pause = firstPause; this.#outage === outage && !this.#closed; pause = Math.min(pause * 2, longestPause)) {
      const asked = this.#sql;
      try {
        await withinTime(asked`SELECT 1`, probeTimeoutMs);
        if (this.#outage === outage) this.#answered();
      } catch (thrown) {
        outage.cause = thrown;
        this.#replaceSilent(asked, thrown);
        await Bun.sleep(pause);
      }
    }
  }

  /** @throws ProxyError if the database is still away after a moment. */
  async #untilBack(isChange: boolean): Promise<void> {
    while (this.#outage) {
      const left = this.#outage.waitUntil - performance.now();
      if (left <= 0) throw databaseAway(new NotAsked("the database is away", { cause: this.#outage.cause }), isChange);
      await Promise.race([this.#outage.over.promise, Bun.sleep(left)]);
    }
  }

  /** @throws ProxyError if the database is away, or answers nobody for so long. */
  async #untilTurn(timeoutMs: number, isChange: boolean): Promise<Turns> {
    const askedAt = performance.now();
    const left = () => timeoutMs - (performance.now() - Math.max(askedAt, this.#answeredAt));
    for (;;) {
      if (this.#outage) await this.#untilBack(isChange);
      const current = this.#turns;
      const outcome = await current.take(left);
      const isPresent = current === this.#turns && !this.#outage;
      if (outcome === "turn" && isPresent) return current;
      if (outcome === "turn") current.give();
      if (outcome !== "silent" || !isPresent) continue;
      const cause = new SlowDatabase(`no answer to anybody within ${timeoutMs} ms`);
      this.#isAway = true;
      if (!this.#closed) this.replace();
      this.#begin(cause);
      throw databaseAway(new NotAsked("all connections wait for the database", { cause }), isChange);
    }
  }
}

/**
 * A server that disappeared without closing its connections is noticed by the time that an answer takes.
 * @throws SlowDatabase
 */
async function withinTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SlowDatabase(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
