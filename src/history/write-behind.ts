/** Writes rows later than the requests that they describe, so that a slow or broken disk delays no request. */
export interface WriteBehind<T> {
  /** Queues a row. It is written after this turn of the event loop, or with others a moment later. Never throws, never waits. */
  add(row: T): void;
  /** Writes all queued rows now; true when none is left. */
  flush(): boolean;
  /** The last write failed, and rows are queued. */
  readonly degraded: boolean;
  /** How many rows are queued. */
  readonly length: number;
  /** Rows are queued so that they share a transaction with later ones. */
  readonly gathering: boolean;
  /** Writes all queued rows; later rows are ignored. */
  close(): void;
}

export interface WriteBehindOptions<T> {
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
export function openWriteBehind<T>({ write, warn, now }: WriteBehindOptions<T>): WriteBehind<T> {
  const queued: T[] = [];
  let turn: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let retry: NodeJS.Timeout | undefined;
  let degraded = false;
  let closed = false;
  let lost = 0;
  let warnedAt = Number.NEGATIVE_INFINITY;

  const schedule = () => {
    if (degraded || turn || later) return;
    const waitMs = writtenAt + intervalMs - performance.now();
    if (waitMs <= 0) turn = setImmediate(takeTurn);
    else later = setTimeout(takeTurn, waitMs);
  };

  const takeTurn = () => {
    turn = undefined;
    later = undefined;
    // Other work has its turn between two transactions.
    if (writeSome() && queued.length) turn = setImmediate(takeTurn);
  };

  const writeSome = (): boolean => {
    try {
      if (queued.length) write(queued.slice(0, maxRowsPerTransaction));
    } catch (error) {
      fail(error);
      return false;
    }
    queued.splice(0, maxRowsPerTransaction);
    writtenAt = performance.now();
    degraded = false;
    return true;
  };

  const fail = (error: unknown) => {
    degraded = true;
    clearTimeout(retry);
    retry = closed ? undefined : setTimeout(takeTurn, retryMs).unref();
    if (now() - warnedAt < 60_000) return;
    warnedAt = now();
    const lostText = lost ? ` and ${lost} are lost` : "";
    const reason = error instanceof Error ? error.message : String(error);
    warn(
      `The request history cannot be written (${reason}); ${queued.length} entries wait${lostText}. Requests are not affected.`,
    );
  };

  const flush = () => {
    while (queued.length) if (!writeSome()) return false;
    return true;
  };

  return {
    add(row) {
      if (closed) return;
      if (queued.length < maxQueued) queued.push(row);
      else lost += 1;
      schedule();
    },
    flush,
    get degraded() {
      return degraded;
    },
    get length() {
      return queued.length;
    },
    get gathering() {
      return later !== undefined;
    },
    close() {
      closed = true;
      flush();
      clearImmediate(turn);
      clearTimeout(later);
      clearTimeout(retry);
    },
  };
}
