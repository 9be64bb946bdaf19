/** Writes rows later than the requests that they describe, so that a slow or broken disk delays no request. */
interface WriteBehindOptions<T> {
  /** Writes all of the rows, or throws and writes none of them. */
  write(rows: T[]): void;
  /** Called at most once a minute. */
  warn(sentence: string): void;
  /** Unix time in ms. */
  now(): number;
}

/** The most rows that are queued. */
const maxQueued = 10_000;
/** The most rows in one transaction. */
const maxRowsPerTransaction = 200;
const retryMs = 1_000;
/** The time between two transactions. A transaction costs as much as many rows, so in busy times rows share one. */
const intervalMs = 50;

/** Rows that could not be written are tried again every second. Rows for which the queue has no room are lost and counted. */
export class WriteBehind<T> {
  readonly #options: WriteBehindOptions<T>;
  readonly #queued: T[] = [];
  #turn: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #retry: NodeJS.Timeout | undefined;
  #degraded = false;
  #closed = false;
  #lost = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: WriteBehindOptions<T>) {
    this.#options = options;
  }

  /** Queues a row. It is written after this turn of the event loop, or with others a moment later. Never throws, never waits. */
  add(row: T): void {
    if (this.#closed) return;
    if (this.#queued.length < maxQueued) this.#queued.push(row);
    else this.#lost += 1;
    this.#schedule();
  }

  /** Writes all queued rows now; true when none is left. */
  flush(): boolean {
    while (this.#queued.length) if (!this.#writeSome()) return false;
    return true;
  }

  /** The last write failed, and rows are queued. */
  get degraded(): boolean {
    return this.#degraded;
  }

  /** How many rows are queued. */
  get length(): number {
    return this.#queued.length;
  }

  /** Rows for which there was no room. */
  get lost(): number {
    return this.#lost;
  }

  /** Rows are queued so that they share a transaction with later ones. */
  get gathering(): boolean {
    return this.#later !== undefined;
  }

  /** Writes all queued rows; later rows are ignored. */
  close(): void {
    this.#closed = true;
    this.flush();
    clearImmediate(this.#turn);
    clearTimeout(this.#later);
    clearTimeout(this.#retry);
  }

  #schedule(): void {
    if (this.#degraded || this.#turn || this.#later) return;
    const waitMs = this.#writtenAt + intervalMs - performance.now();
    if (waitMs <= 0) this.#turn = setImmediate(this.#takeTurn);
    else this.#later = setTimeout(this.#takeTurn, waitMs);
  }

  readonly #takeTurn = (): void => {
    this.#turn = undefined;
    this.#later = undefined;
    // Other work has its turn between two transactions.
    if (this.#writeSome() && this.#queued.length) this.#turn = setImmediate(this.#takeTurn);
  };

  #writeSome(): boolean {
    try {
      if (this.#queued.length) this.#options.write(this.#queued.slice(0, maxRowsPerTransaction));
    } catch (error) {
      this.#fail(error);
      return false;
    }
    this.#queued.splice(0, maxRowsPerTransaction);
    this.#writtenAt = performance.now();
    this.#degraded = false;
    return true;
  }

  #fail(error: unknown): void {
    const { now, warn } = this.#options;
    this.#degraded = true;
    clearTimeout(this.#retry);
    this.#retry = this.#closed ? undefined : setTimeout(this.#takeTurn, retryMs).unref();
    if (now() - this.#warnedAt < 60_000) return;
    this.#warnedAt = now();
    const lost = this.#lost ? ` and ${this.#lost} are lost` : "";
    const reason = error instanceof Error ? error.message : String(error);
    warn(
      `The request history cannot be written (${reason}); ${this.#queued.length} entries wait${lost}. Requests are not affected.`,
    );
  }
}
