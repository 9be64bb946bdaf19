/**
 * This server reserves a part of each budget ahead, to go on for a while without the database. Such a lease is two per cent of what
 * is left. It is taken only while more than a fifth of the budget is left, and given back when that is not so any more: so nobody has
 * to ask other servers for what they hold, and a budget that is nearly spent is checked by the database alone.
 */
import type { LedgerEntry } from "../budgets/entries";
import { storedAmount } from "../budgets/entries";
import type { Logger } from "../logger";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import { periodOf } from "./ledger-queries";

interface LeaseOptions {
  postgres: Postgres;
  /** The id of this server. */
  replica: string;
  /** Milliseconds that a server goes on without the database. */
  graceMs: number;
  /** Whether requests spent of leases that the ledger does not know of yet: what is left of a budget is not known then. */
  unsettled(): boolean;
  logger: Logger;
  /** ms */
  monotonic?: () => number;
}

interface Lease {
  entry: LedgerEntry;
  /** The most that a request has needed, as stored. */
  least: number;
  usedAt: number;
  /** When the database was asked for it last. */
  askedAt: number;
  /** Which of all questions that was. */
  question: number;
  /** What the database holds for it. */
  taken: number;
  /** What is left of that. */
  left: number;
  /** The database may hold something: also while it is asked, and if its answer was lost. */
  isHeld: boolean;
  /** The question that is under way. */
  asking?: Promise<void>;
}

/** The part of what a budget has left that one lease is. */
const share = 0.02;
/** Milliseconds between two looks at all leases. */
const refreshEvery = 10_000;
/** Milliseconds until the first lease of a budget is taken: a race for a budget that has just begun is decided without leases. */
const firstAfter = 5_000;
/** Milliseconds after which a lease that is used is taken anew: the more is left of the budget, the larger it is. */
const renewEvery = 5 * 60_000;
/** Milliseconds after which a budget that was not used needs no lease. Shorter than a lease lasts. */
const keepFor = 10 * 60_000;

const unused = { usedAt: 0, askedAt: Number.NEGATIVE_INFINITY, question: 0, taken: 0, left: 0, isHeld: false };

const nameOf = ({ key }: LedgerEntry) => JSON.stringify(key);
/** The name without the period: for each server the database has one lease, that of the period which it took from last. */
const slotOf = ({ key: { start: _, ...slot } }: LedgerEntry) => JSON.stringify(slot);
const capOf = ({ entry: { budget } }: Lease) => storedAmount(budget, budget.limit);

export class Leases {
  readonly #options: LeaseOptions;
  readonly #monotonic: () => number;
  readonly #leases = new Map<string, Lease>();
  /** The database may go away when a lease is about to be given back. */
  readonly #lifetimeMs: number;
  #asked = 0;
  #timer: Timer | undefined;
  #refreshAt = Number.POSITIVE_INFINITY;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#monotonic = options.monotonic ?? (() => performance.now());
    this.#lifetimeMs = renewEvery + keepFor + options.graceMs + 60_000;
  }

  /** The period was used: from now on this server holds a lease of it. @param amount What a request needed, as stored. */
  use(entry: LedgerEntry, amount: number): void {
    const { budget } = entry;
    // A client's session is short, and a budget that stops nothing needs no lease.
    if (budget.then === "warn" || budget.per === "session") return;
    const lease = this.#find(entry) ?? { entry, least: 1, ...unused };
    if (lease.usedAt === 0) this.#schedule(firstAfter);
    lease.usedAt = this.#monotonic();
    // The owner may have changed the limit.
    lease.entry = entry;
    lease.least = Math.max(lease.least, amount);
    this.#leases.set(slotOf(entry), lease);
  }

  /** Takes an amount off the lease, while the database is away. @returns Whether that much was left. */
  spend(entry: LedgerEntry, amount: number): boolean {
    const lease = this.#find(entry);
    if (!lease || lease.left < Math.max(amount, 1)) return false;
    lease.left -= amount;
    return true;
  }

  /** Puts back what was not used. */
  putBack(entry: LedgerEntry, amount: number): void {
    const lease = this.#find(entry);
    if (lease) lease.left = Math.max(0, lease.left + amount);
  }

  /**
   * Gives the lease of a period back, for a request that found too little left.
   * @param since `asked` when the request asked.
   * @returns Whether the lease was asked for, or given back, since then.
   */
  async giveBack(entry: LedgerEntry, since: number): Promise<boolean> {
    const lease = this.#find(entry);
    if (!lease || this.#options.unsettled()) return false;
    if (lease.isHeld) await this.#take(lease, 0);
    await lease.asking;
    return lease.question > since;
  }

  /** How often the database was asked for leases. A time would not tell which of two questions at one moment came first. */
  get asked(): number {
    return this.#asked;
  }

  /** Takes and gives back what is due; otherwise that is done every ten seconds. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const now = this.#monotonic();
    if (!this.#options.unsettled()) {
      const scarce = await this.#scarce().catch((thrown) => this.#report(thrown));
      for (const [slot, lease] of this.#leases) {
        const isIdle = now - lease.usedAt > keepFor;
        if (isIdle) this.#leases.delete(slot);
        if (isIdle || scarce?.has(lease)) {
          if (lease.isHeld) await this.#take(lease, 0);
        } else if (isDue(lease, now)) await this.#take(lease, share);
      }
    }
    if (this.#leases.size > 0) this.#schedule(refreshEvery);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #find(entry: LedgerEntry): Lease | undefined {
    const lease = this.#leases.get(slotOf(entry));
    return lease && nameOf(lease.entry) === nameOf(entry) ? lease : undefined;
  }

  /** Schedules a refresh sooner than it was to be, but not later. */
  #schedule(ms: number): void {
    const at = this.#monotonic() + ms;
    if (this.#timer && this.#refreshAt <= at) return;
    clearTimeout(this.#timer);
    this.#refreshAt = at;
    this.#timer = setTimeout(() => void this.refresh(), ms).unref();
  }

  /** Finds the leases of budgets of which no more than a fifth is left, as `dragoman.take_lease` decides too. */
  async #scarce(): Promise<Set<Lease>> {
    const held = [...this.#leases.values()].filter(({ isHeld }) => isHeld);
    if (held.length === 0) return new Set();
    const asked = held.map((lease, place) => ({
      place,
      ...periodOf(lease.entry.key),
      cap: capOf(lease),
      own: lease.taken,
    }));
    const rows = await this.#options.postgres.ask(
      (sql) => sql<{ place: number }[]>`SELECT place FROM jsonb_to_recordset(${JSON.stringify(asked)}::text::jsonb)
          AS given(place int, budget text, kind text, member text, item text, start_ms bigint, cap bigint, own bigint)
        JOIN dragoman.ledger USING (budget, kind, member, item, start_ms) WHERE cap - used - (reserved - own) <= cap / 5`,
    );
    return new Set(rows.map(({ place }) => held[place]!));
  }

  /** One after the other: the database is to hold what was asked for last. */
  #take(lease: Lease, wanted: number): Promise<void> {
    lease.askedAt = this.#monotonic();
    this.#asked += 1;
    lease.question = this.#asked;
    const before = lease.asking ?? Promise.resolve();
    lease.asking = before.then(() => this.#takeNow(lease, wanted)).catch((thrown) => this.#report(thrown));
    return lease.asking;
  }

  /** Asks for at least what is left here, so that the database holds that much even if its answer is lost. */
  async #takeNow(lease: Lease, wanted: number): Promise<void> {
    const { postgres, replica, unsettled } = this.#options;
    const { budget, kind, member, item, start } = lease.entry.key;
    if (wanted === 0) lease.left = 0;
    else lease.isHeld = true;
    const least = Math.max(lease.least, lease.left);
    const [row] = await postgres.ask(
      (sql) => sql<
        { taken: number }[]
      >`SELECT dragoman.take_lease(${replica}::uuid, ${this.#lifetimeMs}::bigint, ${budget},
        ${kind}, ${member}, ${item}, ${start}::bigint, ${capOf(lease)}::bigint, ${wanted}, ${least}::bigint)::float8 AS taken`,
    );
    lease.taken = row!.taken;
    lease.isHeld = row!.taken > 0;
    // What was spent meanwhile is not in the ledger yet.
    lease.left = unsettled() ? Math.min(lease.left, row!.taken) : row!.taken;
  }

  #report(thrown: unknown): undefined {
    if (!isAwayError(thrown)) this.#options.logger.error("The lease of a budget could not be taken.", thrown);
  }
}

/** Whether a lease was used, and is not what it could be or was taken long ago. Others cost the database nothing. */
const isDue = ({ usedAt, askedAt, taken, left, least }: Lease, now: number) =>
  usedAt > askedAt &&
  // A budget that had nothing left is not asked at once.
  (taken > 0 || now - askedAt >= refreshEvery) &&
  (left < Math.max(taken, least) || now - askedAt > renewEvery);
