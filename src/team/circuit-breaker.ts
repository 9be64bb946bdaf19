/**
 * A circuit breaker before the database at one address: while it cannot be reached, questions fail at once, and only a look asks,
 * by a connection of its own. A question that takes too long, or finds all connections busy, says nothing about the database.
 */
import type { SQL } from "bun";
import { databaseAway, NotAsked, SlowDatabase } from "./away";

/** Milliseconds between two looks whether the database is back: at first, and at most. */
const [firstPause, longestPause] = [20, 500];
/** Milliseconds that a look may take. */
const lookMs = 1_000;
/** Milliseconds that questions wait at the beginning, as most connections that are lost can be replaced at once. */
const waitMs = 250;

/** While nobody but the look asks. */
interface Outage {
  cause: unknown;
  /** Until then questions wait. */
  waitUntil: number;
  over: PromiseWithResolvers<void>;
}

interface CircuitBreakerOptions {
  /** Opens a connection to look with. */
  open(): SQL;
}

export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  readonly #awayListeners: (() => void)[] = [];
  /** Missing while questions are asked. */
  #outage: Outage | undefined;
  #looking: Promise<unknown> | undefined;
  #answeredAt = performance.now();
  #closed = false;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** The database cannot be reached. */
  get isAway(): boolean {
    return this.#outage !== undefined;
  }

  /** Milliseconds since the database answered. */
  get silence(): number {
    return performance.now() - this.#answeredAt;
  }

  /** To be called with each answer, also if it is an error. */
  answered(): void {
    this.#answeredAt = performance.now();
    if (!this.#outage) return;
    this.#outage.over.resolve();
    this.#outage = undefined;
  }

  /** The database cannot be reached: from now on nobody asks until it can. */
  begin(cause: unknown): void {
    if (this.#outage || this.#closed) return;
    this.#outage = { cause, waitUntil: performance.now() + waitMs, over: Promise.withResolvers() };
    for (const listener of this.#awayListeners) listener();
    void this.#untilAnswered(this.#outage);
  }

  /** Calls back each time that the database is away. */
  whenAway(listener: () => void): void {
    this.#awayListeners.push(listener);
  }

  /** Waits for a moment if the database is away. @throws ProxyError if it still is. */
  async untilBack(isChange: boolean): Promise<void> {
    while (this.#outage) {
      const left = this.#outage.waitUntil - performance.now();
      if (left <= 0) throw databaseAway(new NotAsked("the database is away", { cause: this.#outage.cause }), isChange);
      await Promise.race([this.#outage.over.promise, Bun.sleep(left)]);
    }
  }

  /** Whether the database answers now. Whoever asks at the same time shares the look. */
  async answers(): Promise<boolean> {
    if (this.#outage) return false;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return (await this.#looking) === undefined;
  }

  close(): void {
    this.#closed = true;
    this.#outage?.over.resolve();
    this.#outage = undefined;
  }

  async #untilAnswered(outage: Outage): Promise<void> {
    for (let pause = firstPause; this.#outage === outage; pause = Math.min(pause * 2, longestPause)) {
      const fault = await this.#look();
      if (this.#outage !== outage) return;
      if (fault === undefined) return this.answered();
      outage.cause = fault;
      await Bun.sleep(pause);
    }
  }

  /** @returns Why the database does not answer; undefined if it does. */
  async #look(): Promise<unknown> {
    const own = this.#options.open();
    try {
      await withinTime(own`SELECT 1`, lookMs);
      return undefined;
    } catch (thrown) {
      return thrown;
    } finally {
      void own.close({ timeout: 0 }).catch(() => {});
    }
  }
}

/**
 * A server that disappeared without closing its connections is noticed by the time that an answer takes.
 * @throws SlowDatabase
 */
export async function withinTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SlowDatabase(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
