/** Writes what requests used of their budgets. What the database cannot take waits on this machine's disk. */
import { failureReason } from "../lib/errors";
import { dayMs, plural } from "../lib/format";
import { isAwayError, isRefused } from "./away";
import { Backlog, writeAccepted } from "./backlog";
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

type Waiting = [id: string, settlements: Settlement[]];

/** Days for which the database knows which reservations were settled, by a server that does not run any more. */
export const settledDays = 7;
/** Milliseconds after which a settlement is not sent: the database may have taken it, and not know that any more. */
const lateAfter = (settledDays - 1) * dayMs;

/** Each settlement counts once, however often it is sent. */
export class Settlements {
  readonly #options: SettlementOptions;
  readonly #backlog: Backlog<Settlement[]>;
  #closed = false;
  #lost = 0;

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

  /** How many waited, and were refused by the database then. */
  get lost(): number {
    return this.#lost;
  }

  /** @param id Of the reservation: a UUID with its time, of version 7. @throws Postgres' own error if it refuses them. */
  async send(id: string, settlements: Settlement[]): Promise<void> {
    try {
      await this.#write([id, settlements]);
    } catch (thrown) {
      if (isRefused(thrown)) throw thrown;
      this.keep(id, settlements);
    }
  }

  /** Lets settlements wait until the database can be asked. @throws The disk's error; ProxyError if the file is full. */
  keep(id: string, settlements: Settlement[]): void {
    this.#backlog.keep([[id, settlements]]);
  }

  /** Writes what waits, as far as that is possible. */
  sendWaiting(): Promise<void> {
    return this.#backlog.writeNow();
  }

  close(): void {
    this.#closed = true;
    this.#backlog.close();
  }

  async #writeAll(waiting: Waiting[]): Promise<void> {
    const { warn } = this.#options;
    const isLate = ([id]: Waiting) => timeOf(id) < Date.now() - lateAfter;
    const late = waiting.filter(isLate).length;
    if (late > 0)
      warn(
        `What ${plural(late, "request")} of more than ${settledDays - 1} days ago used of their budgets waited here until now, and is not counted: it may have been counted before.`,
      );
    const refused = (_: Waiting, thrown: unknown) => {
      this.#lost += 1;
      warn(
        `What a request used of its budgets is not counted, because the database refuses it (${failureReason(thrown)}).`,
      );
    };
    const inTime = waiting.filter((each) => !isLate(each));
    try {
      await writeAccepted(inTime, (each) => this.#writeInOrder(each), refused);
    } catch (thrown) {
      if (!isAwayError(thrown))
        warn(`What requests used of their budgets cannot be written now (${failureReason(thrown)}).`);
      throw thrown;
    }
  }

  async #writeInOrder(waiting: readonly Waiting[]): Promise<void> {
    for (const each of waiting) await this.#write(each);
  }

  async #write([id, settlements]: Waiting): Promise<void> {
    const { postgres, server } = this.#options;
    await postgres.requests.ask(
      (sql) => sql`SELECT dragoman.settle(${id}::uuid, ${server}::uuid, ${JSON.stringify(settlements)}::text::jsonb)`,
    );
  }
}

/** Unix ms. */
const timeOf = (id: string): number => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
