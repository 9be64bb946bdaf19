/**
 * Writes the rows of the history to Postgres. Rows are gathered for a moment and inserted together. What the database cannot take
 * goes to a file of this machine, and follows when the database is back; a row that arrives twice is stored once.
 */

import { cut, type Entry } from "../books/history/entry";
import { FreshRuns } from "../lib/awaitable";
import { failureReason } from "../lib/errors";
import { plural } from "../lib/format";
import { Backlog, writeAccepted } from "./backlog";
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
/** Rows that are kept in memory if neither the database nor the disk takes them. */
const maxQueued = 10_000;
/** Milliseconds between two reports of the same trouble. */
const reportEvery = 60_000;

/** Never throws: what cannot be kept is reported, and a queue that cannot be opened leaves the rows in memory. */
export class RowWriter {
  readonly #options: RowWriterOptions;
  readonly #backlog: Backlog<Entry>;
  #queued: Entry[] = [];
  /** Each writes what is queued at its beginning. */
  readonly #writes = new FreshRuns(() => this.#write());
  #failing = false;
  #closed = false;
  #lost = 0;
  readonly #reportedAt = { database: Number.NEGATIVE_INFINITY, disk: Number.NEGATIVE_INFINITY };

  constructor(options: RowWriterOptions) {
    this.#options = options;
    this.#backlog = new Backlog({
      ...options,
      withoutQueue: "Requests that end while the database is away are kept in memory only",
      write: (rows) => this.#insert(rows.map(([, entry]) => entry)),
    });
  }

  add(entry: Entry): void {
    if (this.#closed) return;
    if (this.#queued.length < maxQueued) this.#queued.push(cut(entry));
    else this.#lost += 1;
    if (this.#queued.length >= maxRowsAtOnce && !this.#failing) void this.#writes.run();
    else this.#writes.runWithin(gatherMs);
  }

  /** Rows that are not in the database yet. */
  get waiting(): number {
    return this.#queued.length + this.#backlog.size;
  }

  /** Rows that nothing could keep, since the start. */
  get lost(): number {
    return this.#lost;
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
    if (this.#queued.length > 0) await this.#writes.run();
  }

  /** @returns False if some of the rows that had come are not in the database. */
  async flush(): Promise<boolean> {
    await this.written();
    await this.#backlog.writeNow();
    return !this.#failing && this.#backlog.size === 0;
  }

  close(): void {
    this.#closed = true;
    this.#writes.stop();
    this.#backlog.close();
    // The rows of a write that is under way are kept too, because it may fail.
    this.#toDisk();
    if (this.#queued.length > 0)
      this.#options.warn(`${plural(this.#queued.length, "request")} of the end are missing in the history.`);
  }

  /** After `close`: writes to the database what waits on the disk, as far as that is possible. */
  finish(): Promise<void> {
    return this.#backlog.writeNow();
  }

  async #write(): Promise<void> {
    // While the database is away, rows are on the disk before it is tried again.
    if (this.#failing) this.#toDisk();
    try {
      for (let left = this.#queued.length; left > 0 && this.#queued.length > 0; ) {
        const entries = this.#queued.slice(0, Math.min(left, maxRowsAtOnce));
        left -= entries.length;
        await this.#insert(entries);
        // Some may have gone to the disk meanwhile, and others may have come: only what was stored leaves.
        const stored = new Set(entries);
        this.#queued = this.#queued.filter((entry) => !stored.has(entry));
      }
    } catch {
      this.#toDisk();
    }
    if (this.#queued.length > 0) this.#writes.runWithin(gatherMs);
  }

  /** @throws If the database does not take them now, which it reports. */
  async #insert(entries: readonly Entry[]): Promise<void> {
    const { postgres, now, warn } = this.#options;
    const refused = (_: Entry, thrown: unknown) => {
      this.#lost += 1;
      warn(`A request could not be added to the history (${failureReason(thrown)}).`);
    };
    try {
      await writeAccepted(entries, (rows) => insertRows(postgres.requests, rows, now?.()), refused);
    } catch (thrown) {
      this.#failing = true;
      const lost = this.#lost > 0 ? `, and ${this.#lost} are lost` : "";
      this.#report(
        "database",
        `The request history cannot be written to the database (${failureReason(thrown)}); ${this.waiting} entries wait${lost}. Requests are not affected.`,
      );
      throw thrown;
    }
    if (this.#failing) this.#options.warn("The database takes the request history again.");
    this.#failing = false;
  }

  #toDisk(): void {
    try {
      while (this.#queued.length > 0) {
        const entries = this.#queued.slice(0, maxRowsAtOnce);
        this.#backlog.keep(entries.map((entry) => [entry.request_id, entry]));
        this.#queued.splice(0, entries.length);
      }
    } catch (thrown) {
      this.#report(
        "disk",
        `The request history cannot be kept on this machine's disk either (${failureReason(thrown)}); ${this.#lost} entries are lost, and ${this.#queued.length} are in memory.`,
      );
    }
  }

  #report(trouble: "database" | "disk", sentence: string): void {
    const now = (this.#options.now ?? Date.now)();
    if (now - this.#reportedAt[trouble] < reportEvery) return;
    this.#reportedAt[trouble] = now;
    this.#options.warn(sentence);
  }
}
