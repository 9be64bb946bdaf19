/** What the database could not take: it waits on this machine's disk, and is tried again every second. */
import { FreshRuns } from "../lib/awaitable";
import { failureReason } from "../lib/errors";
import { isRefused } from "./away";
import type { DiskQueue } from "./disk-queue";

interface BacklogOptions<T> {
  /** @throws The disk's error, if it cannot be opened. */
  openQueue(): DiskQueue<T>;
  /** Values of an earlier try may come again. @throws If they have to wait: it has said why. */
  write(values: [key: string, value: T][]): Promise<void>;
  warn(sentence: string): void;
  /** What it means that the queue cannot be opened: the beginning of a sentence. */
  withoutQueue: string;
}

/** Milliseconds between two tries. */
const retryMs = 1_000;
const mostAtOnce = 200;

export class Backlog<T> {
  readonly #options: BacklogOptions<T>;
  readonly #tries = new FreshRuns(() => this.#writeAll());
  #queue: DiskQueue<T> | undefined;

  constructor(options: BacklogOptions<T>) {
    this.#options = options;
    try {
      // Values of an earlier run may wait.
      if (this.#opened().size > 0) this.#tries.runWithin(retryMs);
    } catch (thrown) {
      options.warn(`${options.withoutQueue} (${failureReason(thrown)}).`);
    }
  }

  get size(): number {
    return this.#queue?.size ?? 0;
  }

  /** @throws The disk's error. */
  keep(values: readonly (readonly [key: string, value: T])[]): void {
    this.#opened().add(values);
    this.#tries.runWithin(retryMs);
  }

  /** Writes all to the database now, as far as that is possible. Never throws. */
  async writeNow(): Promise<void> {
    if (this.size > 0) await this.#tries.run();
  }

  close(): void {
    this.#tries.stop();
  }

  #opened(): DiskQueue<T> {
    this.#queue ??= this.#options.openQueue();
    return this.#queue;
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.size > 0) {
        const values = this.#queue!.take(mostAtOnce);
        await this.#options.write(values);
        this.#queue!.remove(values.map(([key]) => key));
      }
    } catch {
      this.#tries.runWithin(retryMs);
    }
  }
}

/**
 * Writes values. One that the database refuses would hold up all others, so it is left out.
 * @param write May be called again with what it has written before. @param refused Called with each value that is left out.
 * @throws What else goes wrong.
 */
export async function writeAccepted<T>(
  values: readonly T[],
  write: (values: readonly T[]) => Promise<void>,
  refused: (value: T, thrown: unknown) => void,
): Promise<void> {
  if (values.length === 0) return;
  try {
    await write(values);
  } catch (thrown) {
    if (!isRefused(thrown)) throw thrown;
    if (values.length === 1) refused(values[0]!, thrown);
    else for (const value of values) await writeAccepted([value], write, refused);
  }
}
