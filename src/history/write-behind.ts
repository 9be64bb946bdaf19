/** Rows written aside of the requests they tell of: a slow or broken disk is never a request's concern. */
export interface WriteBehind<T> {
  /** Takes a row, to be written after this turn of the event loop, or with others a moment later. Never throws, never waits. */
  add(row: T): void;
  /** Writes what waits, now; true when nothing waits any more. */
  flush(): boolean;
  /** The last write failed, and rows wait. */
  readonly degraded: boolean;
  /** Rows wait for others to be written with. */
  readonly gathering: boolean;
  /** Writes what waits and takes no more. */
  close(): void;
}

export interface WriteBehindOptions<T> {
  /** Writes all of the rows, or throws and writes none. */
  write(rows: T[]): void;
  /** Said at most once a minute. */
  warn(sentence: string): void;
  /** Unix time in ms. */
  now(): number;
}

/** Rows that may wait. */
const capacity = 10_000;
/** Rows of one transaction. */
const atOnce = 200;
const retryMs = 1_000;
/** A transaction costs as much as many rows: those of a busy time share one. */
const apartMs = 50;

/** Rows that cannot be written wait, and are tried again every second; what finds no room is lost, and counted. */
export function openWriteBehind<T>({ write, warn, now }: WriteBehindOptions<T>): WriteBehind<T> {
  const waiting: T[] = [];
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
    const early = writtenAt + apartMs - performance.now();
    if (early <= 0) turn = setImmediate(takeTurn);
    else later = setTimeout(takeTurn, early);
  };

  const takeTurn = () => {
    turn = undefined;
    later = undefined;
    // Between two lots the others have their turn.
    if (writeSome() && waiting.length) turn = setImmediate(takeTurn);
  };

  const writeSome = (): boolean => {
    try {
      if (waiting.length) write(waiting.slice(0, atOnce));
    } catch (error) {
      fail(error);
      return false;
    }
    waiting.splice(0, atOnce);
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
    const gone = lost ? ` and ${lost} are lost` : "";
    const reason = error instanceof Error ? error.message : String(error);
    warn(`The request history cannot be written (${reason}); ${waiting.length} entries wait${gone}. Requests go on.`);
  };

  const flush = () => {
    while (waiting.length) if (!writeSome()) return false;
    return true;
  };

  return {
    add(row) {
      if (closed) return;
      if (waiting.length < capacity) waiting.push(row);
      else lost += 1;
      schedule();
    },
    flush,
    get degraded() {
      return degraded;
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
