/**
 * Writes the rows of the history to Postgres. Rows are gathered for a moment and inserted together. What the database cannot take
 * goes to a file of this machine, and follows when the database is back; a row that arrives twice is stored once.
 */
import { FreshRuns } from "../awaitable";
import { ProxyError } from "../errors";
import { cut, type Entry } from "../history/entry";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import type { DiskQueue } from "./disk-queue";
import { insertRows } from "./requests";

export interface RowWriterOptions {
  postgres: Postgres;
  /** For rows that wait for the database. @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<Entry>;
  warn(sentence: string): void;
  /** Wall clock, ms; that of the database where rows are stored, if it is missing. */
  now?: (() => number) | undefined;
}

/** Milliseconds that a row waits for others. */
const gatherMs = 100;
const maxRowsAtOnce = 200;
/** Milliseconds between two tries while the database is away. */
const retryMs = 1_000;
/** Rows that are kept in memory if neither the database nor the disk takes them. */
const maxQueued = 10_000;
/** Milliseconds between two reports of the same trouble. */
const reportEvery = 60_000;

/** Never throws: what cannot be kept is reported, and a queue that cannot be opened leaves the rows in memory. */
export class RowWriter {
  readonly #options: RowWriterOptions;
  #queued: Entry[] = [];
  #onDisk: DiskQueue<Entry> | undefined;
  #timer: Timer | undefined;
  #diskTimer: Timer | undefined;
  /** Each writes what is queued at its beginning, and some of what waits on the disk. */
  readonly #runs = new FreshRuns(() => this.#write());
  #failing = false;
  #closed = false;
  #lost = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RowWriterOptions) {
    this.#options = options;
    try {
      // Rows of an earlier run may wait.
      if (this.#openedQueue().size > 0) this.#schedule(0);
    } catch (thrown) {
      options.warn(`Requests that end while the database is away are kept in memory only (${reasonOf(thrown)}).`);
    }
  }

  add(entry: Entry): void {
    if (this.#closed) return;
    if (this.#queued.length < maxQueued) this.#queued.push(cut(entry));
    else this.#lost += 1;
    if (this.#failing) this.#toDiskSoon();
    if (this.#queued.length >= maxRowsAtOnce && !this.#failing) void this.#runs.run();
    else this.#schedule(this.#failing ? retryMs : gatherMs);
  }

  /** Rows that are not in the database yet. */
  get waiting(): number {
    return this.#queued.length + (this.#onDisk?.size ?? 0);
  }

  /** The last write failed. */
  get isFailing(): boolean {
    return this.#failing;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Waits for the entries that are queued now, however many come meanwhile, or until the database does not take them. */
  async written(): Promise<void> {
    if (this.#queued.length > 0) await this.#runs.run();
  }

  /** @returns False if some of the rows that had come are not in the database. */
  async flush(): Promise<boolean> {
    if (this.waiting > 0) await this.#runs.run();
    await this.#writeFromDisk();
    return !this.#failing && !this.#hasOnDisk;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#diskTimer);
    // The rows of a write that is under way are kept too, because it may fail.
    this.#toDisk();
  }

  /** After `close`: writes to the database what waits on the disk, as far as that is possible. */
  async finish(): Promise<void> {
    await this.#writeFromDisk();
    this.#onDisk = undefined;
  }

  async #writeFromDisk(): Promise<void> {
    while (this.#hasOnDisk && !this.#failing) await this.#runs.run();
  }

  get #hasOnDisk(): boolean {
    return this.#onDisk !== undefined && this.#onDisk.size > 0;
  }

  #openedQueue(): DiskQueue<Entry> {
    this.#onDisk ??= this.#options.openQueue();
    return this.#onDisk;
  }

  #schedule(ms: number): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#runs.run();
    }, ms).unref();
  }

  async #write(): Promise<void> {
    try {
      await this.#writeQueued();
      // Whoever asks waits for what is queued, but not for all that is on the disk.
      const rows = this.#onDisk?.take(maxRowsAtOnce) ?? [];
      if (rows.length > 0) await this.#store(rows.map(([, entry]) => entry));
      this.#onDisk?.remove(rows.map(([id]) => id));
      if (this.#failing) this.#options.warn("The database takes the request history again.");
      this.#failing = false;
    } catch (thrown) {
      this.#failing = true;
      this.#toDisk();
      const lost = this.#lost > 0 ? `, and ${this.#lost} are lost` : "";
      const waiting = this.#onDisk?.size ?? this.#queued.length;
      this.#report(
        `The request history cannot be written to the database (${reasonOf(thrown)}); ${waiting} entries wait${lost}. Requests are not affected.`,
      );
    }
    if (this.waiting > 0) this.#schedule(this.#failing ? retryMs : this.#hasOnDisk ? 0 : gatherMs);
  }

  async #writeQueued(): Promise<void> {
    for (let left = this.#queued.length; left > 0 && this.#queued.length > 0; ) {
      const entries = this.#queued.slice(0, Math.min(left, maxRowsAtOnce));
      left -= entries.length;
      await this.#store(entries);
      // Some may have gone to the disk meanwhile, and others may have come: only what was stored leaves.
      const stored = new Set(entries);
      this.#queued = this.#queued.filter((entry) => !stored.has(entry));
    }
  }

  /** A row that the database rejects would hold up all others, so it is reported and left out. */
  async #store(entries: Entry[]): Promise<void> {
    const { postgres, now, warn } = this.#options;
    try {
      await insertRows(postgres, entries, now?.());
    } catch (thrown) {
      if (isAwayError(thrown)) throw thrown;
      if (entries.length === 1) return warn(`A request could not be added to the history (${reasonOf(thrown)}).`);
      for (const entry of entries) await this.#store([entry]);
    }
  }

  /** While the database is away, rows are on the disk before it is tried again. */
  #toDiskSoon(): void {
    this.#diskTimer ??= setTimeout(() => {
      this.#diskTimer = undefined;
      if (this.#failing && !this.#closed) this.#toDisk();
    }, gatherMs).unref();
  }

  #toDisk(): void {
    if (this.#queued.length === 0) return;
    try {
      this.#openedQueue().add(this.#queued.map((entry) => [entry.request_id, entry]));
      this.#queued = [];
    } catch (thrown) {
      this.#report(`The request history cannot be kept on this machine's disk either (${reasonOf(thrown)}).`);
    }
  }

  #report(sentence: string): void {
    const now = (this.#options.now ?? Date.now)();
    if (now - this.#reportedAt < reportEvery) return;
    this.#reportedAt = now;
    this.#options.warn(sentence);
  }
}

/** The reason of a failure, to be put into a sentence. */
export function reasonOf(thrown: unknown): string {
  const { cause } = thrown instanceof ProxyError ? thrown.details : {};
  const reason = cause instanceof Error ? cause : thrown;
  return (reason instanceof Error ? reason.message : String(reason)).replace(/\.$/, "");
}
