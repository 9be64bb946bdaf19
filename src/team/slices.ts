/**
 * What this server has reserved ahead of each budget, to go on for a while without the database. A slice is small, and given back
 * as soon as another server finds too little left.
 */
import type { LedgerEntry } from "../budgets/entries";
import { storedAmount } from "../budgets/entries";
import type { Logger } from "../logger";
import { isAwayError } from "./away";
import { type Changes, notifyServers } from "./changes";
import type { Postgres } from "./connection";
import { lostReplicas } from "./replica";

export interface Slices {
  /** The period was used: from now on this server holds a slice of it. @param amount What a request needed, as stored. */
  use(entry: LedgerEntry, amount: number): void;
  /** Takes an amount off the slice, while the database is away. @returns Whether that much was left. */
  spend(entry: LedgerEntry, amount: number): boolean;
  /** Puts back what was not used. */
  putBack(entry: LedgerEntry, amount: number): void;
  /**
   * Asks all servers to give back their slices of a period, and waits until those have that can.
   * @param holders The ids of the servers that hold one.
   * @returns False at once if all of them are known to be dead or silent.
   */
  recall(entry: LedgerEntry, holders: readonly string[]): Promise<boolean>;
  /** Takes and gives back what is due; otherwise that is done every ten seconds. */
  refresh(): Promise<void>;
  close(): void;
}

export interface SlicesOptions {
  postgres: Postgres;
  changes: Changes;
  /** The id of this server. */
  replica: string;
  /** Milliseconds that a server goes on without the database. */
  graceMs: number;
  /** Whether requests spent of slices that the ledger does not know of yet: what is left of a budget is not known then. */
  unsettled(): boolean;
  logger(): Logger;
  /** Milliseconds that a recall waits for a server that is alive. */
  recallMs?: number;
  /** ms */
  monotonic?: () => number;
}

interface Slice {
  entry: LedgerEntry;
  /** The most that a request has needed, as stored. */
  least: number;
  usedAt: number;
  /** When the database was asked for it last. */
  askedAt: number;
  /** What the database holds for it. */
  taken: number;
  /** What is left of that. */
  left: number;
  /** The database may hold something: also while it is asked, and if its answer was lost. */
  isHeld: boolean;
  /** The question that is under way. */
  asking?: Promise<void>;
}

/** Of what a budget has left. */
const share = 0.02;
/** Milliseconds between two looks at all slices. */
const refreshEvery = 10_000;
/** Milliseconds until the first slice of a budget is taken. */
const firstAfter = 500;
/** A slice that is used is taken anew so often: the more is left of the budget, the larger it is. */
const renewEvery = 5 * 60_000;
/** A budget that was not used for so long needs no slice. Shorter than a slice lasts. */
const keepFor = 10 * 60_000;
/** A budget whose slices were recalled has little left: none is taken for so long. */
const pauseAfterRecall = 60_000;
/** The longest wait for slices of other servers: what a request waits for the database too. */
const defaultRecallMs = 2_000;
/** One that could not give its slice back is not waited for during so long. */
const silentFor = 30_000;
/** Milliseconds between two looks whether slices have come back: at first, and at most. */
const [firstPause, longestPause] = [10, 100];

const unused = { usedAt: 0, askedAt: Number.NEGATIVE_INFINITY, taken: 0, left: 0, isHeld: false };

const topic = "slices";
const nameOf = ({ key }: LedgerEntry) => JSON.stringify(key);
/** The name without the period: for each server the database has one slice, that of the period which it took from last. */
const slotOf = (name: string) => name.slice(0, name.lastIndexOf(","));

/** The amounts of a period, as stored, and of these what servers hold in slices: id → amount. */
export interface PeriodAmounts {
  used: number;
  reserved: number;
  unknown: number;
  held: Record<string, number>;
}

/** All as it was at one moment. @param timeoutMs What a request may wait. @throws ProxyError if the database is away. */
export async function readAmounts(
  postgres: Postgres,
  { key }: LedgerEntry,
  timeoutMs?: number,
): Promise<PeriodAmounts> {
  const [budget, holder, start] = key;
  const [row] = await postgres.ask(
    (sql) => sql<PeriodAmounts[]>`SELECT used::float8 AS used, reserved::float8 AS reserved, unknown::float8 AS unknown,
      coalesce((SELECT jsonb_object_agg(replica, amount) FROM dragoman.reservations AS slices WHERE is_slice
        AND state = 'running' AND (budget, holder, start_ms) = (ledger.budget, ledger.holder, ledger.start_ms)), '{}')
        AS held
      FROM dragoman.ledger WHERE (budget, holder, start_ms) = (${budget}, ${holder}, ${start}::bigint)`,
    timeoutMs,
  );
  return row ?? { used: 0, reserved: 0, unknown: 0, held: {} };
}

export function openSlices(options: SlicesOptions): Slices {
  const { postgres, changes, replica, graceMs, unsettled, logger, recallMs = defaultRecallMs } = options;
  const { monotonic = () => performance.now() } = options;
  const slices = new Map<string, Slice>();
  const pausedUntil = new Map<string, number>();
  const recalls = new Map<string, Promise<void>>();
  /** Servers that are dead or could not give a slice back, each until when that is believed. */
  const silentUntil = new Map<string, number>();
  // The database may go away when a slice is about to be given back.
  const lifetimeMs = renewEvery + keepFor + graceMs + 60_000;
  let timer: Timer | undefined;
  let refreshAt = Number.POSITIVE_INFINITY;

  const find = (name: string): Slice | undefined => {
    const slice = slices.get(slotOf(name));
    return slice && nameOf(slice.entry) === name ? slice : undefined;
  };
  /** Asks for at least what is left here, so that the database holds that much even if its answer is lost. */
  const takeNow = async (slice: Slice, wanted: number): Promise<void> => {
    const { budget, key } = slice.entry;
    if (wanted === 0) slice.left = 0;
    else slice.isHeld = true;
    const least = Math.max(slice.least, slice.left);
    // Requests of other servers wait for what is given back: it does not queue behind those of this one.
    const ask = wanted === 0 ? postgres.askDirect : postgres.ask;
    const [row] = await ask(
      (sql) => sql<{ taken: number }[]>`SELECT dragoman.take_slice(${replica}::uuid, ${lifetimeMs}::bigint, ${key[0]},
        ${key[1]}, ${key[2]}::bigint, ${storedAmount(budget, budget.limit)}::bigint, ${wanted}, ${least}::bigint
      )::float8 AS taken`,
    );
    slice.taken = row!.taken;
    slice.isHeld = row!.taken > 0;
    // What was spent meanwhile is not in the ledger yet.
    slice.left = unsettled() ? Math.min(slice.left, row!.taken) : row!.taken;
  };
  /** One after the other: the database is to hold what was asked for last. */
  const take = (slice: Slice, wanted: number): Promise<void> => {
    slice.askedAt = monotonic();
    const asking = (slice.asking ?? Promise.resolve()).then(() => takeNow(slice, wanted)).catch(report);
    slice.asking = asking;
    return asking;
  };
  /** One that is used and is not what it could be, or was taken long ago. Others cost the database nothing. */
  const isDue = ({ usedAt, askedAt, taken, left, least }: Slice, now: number) =>
    usedAt > askedAt &&
    // A budget that had nothing left is not asked at once.
    (taken > 0 || now - askedAt >= refreshEvery) &&
    (left < Math.max(taken, least) || now - askedAt > renewEvery);
  const report = (thrown: unknown) => {
    if (!isAwayError(thrown)) logger().error("The slice of a budget could not be taken.", thrown);
  };
  const refresh = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const now = monotonic();
    for (const [slot, slice] of unsettled() ? [] : slices) {
      const isIdle = now - slice.usedAt > keepFor;
      if (isIdle) slices.delete(slot);
      const isUnwanted = isIdle || now < (pausedUntil.get(nameOf(slice.entry)) ?? 0);
      if (isUnwanted ? slice.isHeld : isDue(slice, now)) await take(slice, isUnwanted ? 0 : share);
    }
    for (const [name, until] of pausedUntil) if (now >= until) pausedUntil.delete(name);
    if (slices.size > 0) schedule(refreshEvery);
  };
  /** Sooner than it was to be, but not later. */
  const schedule = (ms: number) => {
    const at = monotonic() + ms;
    if (timer && refreshAt <= at) return;
    clearTimeout(timer);
    refreshAt = at;
    timer = setTimeout(refresh, ms).unref();
  };
  const giveBack = async (name: string): Promise<void> => {
    pausedUntil.set(name, monotonic() + pauseAfterRecall);
    const slice = find(name);
    if (slice?.isHeld && !unsettled()) await take(slice, 0);
  };
  changes.on(topic, ({ name }) => {
    if (typeof name === "string") void giveBack(name);
  });

  const isSilent = (id: string) => monotonic() < (silentUntil.get(id) ?? 0);
  const believeSilent = (ids: readonly string[]) => {
    for (const [id, until] of silentUntil) if (monotonic() >= until) silentUntil.delete(id);
    for (const id of ids) silentUntil.set(id, monotonic() + silentFor);
  };
  const recallNow = async (entry: LedgerEntry): Promise<void> => {
    const name = nameOf(entry);
    await giveBack(name);
    await postgres.ask((sql) => notifyServers(sql, { topic, name }));
    const deadline = performance.now() + recallMs;
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      const isOver = performance.now() > deadline;
      const { held } = await readAmounts(postgres, entry);
      const waited = Object.keys(held).filter((id) => !isSilent(id));
      if (waited.length === 0) return;
      believeSilent(isOver ? waited : await postgres.ask((sql) => lostReplicas(sql, waited)));
      if (waited.every(isSilent)) return;
      await Bun.sleep(pause);
    }
  };

  return {
    use(entry, amount) {
      const { budget } = entry;
      // A client's session is short, and a budget that stops nothing needs no slice.
      if (budget.then === "warn" || budget.per === "session") return;
      const name = nameOf(entry);
      const slice = find(name) ?? { entry, least: 1, ...unused };
      if (slice.usedAt === 0) schedule(firstAfter);
      slice.usedAt = monotonic();
      // The owner may have changed the limit.
      slice.entry = entry;
      slice.least = Math.max(slice.least, amount);
      slices.set(slotOf(name), slice);
    },
    spend(entry, amount) {
      const slice = find(nameOf(entry));
      if (!slice || slice.left < Math.max(amount, 1)) return false;
      slice.left -= amount;
      return true;
    },
    putBack(entry, amount) {
      const slice = find(nameOf(entry));
      if (slice) slice.left = Math.max(0, slice.left + amount);
    },
    async recall(entry, holders) {
      if (holders.every(isSilent)) return false;
      const name = nameOf(entry);
      const running = recalls.get(name) ?? recallNow(entry).finally(() => recalls.delete(name));
      recalls.set(name, running);
      await running;
      return true;
    },
    refresh,
    close: () => clearTimeout(timer),
  };
}
