/** Writes what requests used of their budgets. What the database cannot take waits on this machine's disk. */
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import type { DiskQueue } from "./disk-queue";
import type { Settlement } from "./ledger-queries";

export interface SettlementOptions {
  postgres: Postgres;
  /** The id of this server. */
  replica: string;
  warn(sentence: string): void;
  /** For settlements that wait for the database. @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<Settlement[]>;
}

/** Milliseconds between two tries while the database is away. */
const retryMs = 1_000;

/** Each settlement counts once, however often it is sent. */
export class Settlements {
  readonly #options: SettlementOptions;
  #queue: DiskQueue<Settlement[]> | undefined;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: SettlementOptions) {
    this.#options = options;
    try {
      this.#queue = options.openQueue();
      if (this.#queue.size > 0) this.#schedule();
    } catch (thrown) {
      options.warn(`What requests use of their budgets while the database is away is lost (${thrown}).`);
    }
  }

  /** How many wait on the disk. */
  get waiting(): number {
    return this.#closed ? 0 : (this.#queue?.size ?? 0);
  }

  async send(id: string, settlements: Settlement[]): Promise<void> {
    try {
      await this.#write(id, settlements);
    } catch (thrown) {
      if (!isAwayError(thrown)) throw thrown;
      this.keep(id, settlements);
    }
  }

  /** Lets settlements wait until the database can be asked. */
  keep(id: string, settlements: Settlement[]): void {
    this.#queue?.add([[id, settlements]]);
    this.#schedule();
  }

  async sendWaiting(): Promise<void> {
    this.#timer = undefined;
    try {
      while (this.#queue && this.#queue.size > 0)
        for (const [id, settlements] of this.#queue.take(100)) {
          await this.#write(id, settlements);
          this.#queue.remove([id]);
        }
    } catch (thrown) {
      if (!isAwayError(thrown))
        this.#options.warn(`What requests used of their budgets could not be written (${thrown}).`);
      this.#schedule();
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (!this.#closed) this.#timer ??= setTimeout(() => void this.sendWaiting(), retryMs).unref();
  }

  async #write(id: string, settlements: readonly Settlement[]): Promise<void> {
    const { postgres, replica } = this.#options;
    await postgres.ask(
      (sql) => sql`SELECT dragoman.settle(${id}::uuid, ${replica}::uuid, ${JSON.stringify(settlements)}::text::jsonb)`,
    );
  }
}
