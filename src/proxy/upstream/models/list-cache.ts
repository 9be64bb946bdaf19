/** Lists that are fetched again when they are old: the models of an account, or of a provider. */
import { dayMs } from "../../../lib/format";

/** Milliseconds. */
const freshFor = 10 * 60_000;
const retryAfter = 30_000;

interface Entry<List> {
  list?: List;
  /** Times of the monotonic clock: a wall clock that is set makes no list younger, and ends no wait. */
  fetchedAt: number;
  running?: { list: Promise<List>; since: number };
  failure?: { at: number; thrown: unknown };
}

/** One list per key. One fetch runs per key at a time, however many callers need the list. */
export class ListCache<Key extends WeakKey, List> {
  readonly #entries = new WeakMap<Key, Entry<List>>();
  readonly #monotonic: () => number;

  /** @param monotonic Milliseconds. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** The last list, however old; undefined if none was fetched yet. */
  get(key: Key): List | undefined {
    return this.#entries.get(key)?.list;
  }

  /** Milliseconds; infinite without a list. */
  ageOf(key: Key): number {
    const entry = this.#entries.get(key);
    return entry?.list === undefined ? Number.POSITIVE_INFINITY : this.#monotonic() - entry.fetchedAt;
  }

  /** The list, if it is too young to be fetched again. */
  fresh(key: Key): List | undefined {
    return this.ageOf(key) < freshFor ? this.get(key) : undefined;
  }

  /** Whether a list of the last day may serve while a new one is fetched. */
  isUsable(key: Key): boolean {
    return this.ageOf(key) < dayMs;
  }

  /** What the last fetch threw, if it failed so recently that the next one should wait. */
  recentFailure(key: Key): { thrown: unknown } | undefined {
    const failure = this.#entries.get(key)?.failure;
    return failure && this.#monotonic() - failure.at < retryAfter ? failure : undefined;
  }

  /** Fetches the list by `work`, or waits for the fetch that runs already. @throws what `work` throws */
  fetch(key: Key, work: () => Promise<List>): Promise<List> {
    const entry = this.#entryOf(key);
    if (entry.running) return entry.running.list;
    const list = work()
      .then(
        (fetched) => {
          Object.assign(entry, { list: fetched, fetchedAt: this.#monotonic(), failure: undefined });
          return fetched;
        },
        (thrown) => {
          entry.failure = { at: this.#monotonic(), thrown };
          throw thrown;
        },
      )
      .finally(() => {
        entry.running = undefined;
      });
    entry.running = { list, since: performance.now() };
    return list;
  }

  /** Milliseconds since the running fetch began; undefined if none runs. */
  waitedFor(key: Key): number | undefined {
    const since = this.#entries.get(key)?.running?.since;
    return since === undefined ? undefined : performance.now() - since;
  }

  /** Changes the list without making it younger. */
  replace(key: Key, list: List): void {
    this.#entryOf(key).list = list;
  }

  #entryOf(key: Key): Entry<List> {
    const entry = this.#entries.get(key) ?? { fetchedAt: Number.NEGATIVE_INFINITY };
    this.#entries.set(key, entry);
    return entry;
  }
}
