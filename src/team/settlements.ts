/** Writes what requests used of their budgets. What the database cannot take waits on this machine's disk. */
import { isAwayError } from "./away";
import { Backlog } from "./backlog";
import type { Postgres } from "./connection";
import type { DiskQueue } from "./disk-queue";
import type { Settlement } from "./ledger-queries";

export interface SettlementOptions {
  postgres: Postgres;
  /** The id of this server. */
  server: string;
  warn(sentence: string): void;
  /** For settlements that wait for the database. @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<Settlement[]>;
}

/** Each settlement counts once, however often it is sent. */
export class Settlements {
  readonly #options: SettlementOptions;
  readonly #backlog: Backlog<Settlement[]>;
  #closed = false;

  constructor(options: SettlementOptions) {
    this.#options = options;
    this.#backlog = new Backlog({
      ...options,
      withoutQueue: "What requests use of their budgets while the database is away is lost",
      write: (waiting) => this.#writeAll(waiting),
    });
  }

  /** How many wait on the disk. */
  get waiting(): number {
    return this.#closed ? 0 : this.#backlog.size;
  }

  async send(id: string, settlements: Settlement[]): Promise<void> {
    try {
      await this.#write(id, settlements);
    } catch (thrown) {
      if (!isAwayError(thrown)) throw thrown;
      this.keep(id, settlements);
    }
  }

  /** Lets settlements wait until the database can be asked. @throws The disk's error. */
  keep(id: string, settlements: Settlement[]): void {
    if (this.#backlog.isOpen) this.#backlog.keep([[id, settlements]]);
  }

  /** Writes what waits, as far as that is possible. */
  sendWaiting(): Promise<void> {
    return this.#backlog.writeNow();
  }

  close(): void {
    this.#closed = true;
    this.#backlog.close();
  }

  async #writeAll(waiting: [id: string, settlements: Settlement[]][]): Promise<void> {
    try {
      for (const [id, settlements] of waiting) await this.#write(id, settlements);
    } catch (thrown) {
      if (!isAwayError(thrown))
        this.#options.warn(`What requests used of their budgets could not be written (${thrown}).`);
      throw thrown;
    }
  }

  async #write(id: string, settlements: readonly Settlement[]): Promise<void> {
    const { postgres, server } = this.#options;
    await postgres.ask(
      (sql) => sql`SELECT dragoman.settle(${id}::uuid, ${server}::uuid, ${JSON.stringify(settlements)}::text::jsonb)`,
    );
  }
}
