import type { Awaitable } from "./awaitable";

/** Turns of which only some can be taken at a time, in the order of who asked. */
export class Turns {
  #free: number;
  readonly #waiting = new Set<(outcome: "turn" | "ended") => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a turn.
   * @param ms How long this may take; without it, as long as it takes.
   * @param signal Who waits leaves when it aborts.
   * @returns `late` after that time, `ended` after `end` and for a signal that has aborted.
   */
  async take(ms?: number, signal?: AbortSignal): Promise<"turn" | "late" | "ended"> {
    if (signal?.aborted) return "ended";
    if (this.#free > 0) {
      this.#free -= 1;
      return "turn";
    }
    const { promise, resolve } = Promise.withResolvers<"turn" | "ended" | "late">();
    // Whoever leaves must not be given a turn a moment later: it would be lost.
    const leaveAs = (outcome: "late" | "ended") => {
      this.#waiting.delete(resolve);
      resolve(outcome);
    };
    const leave = () => leaveAs("ended");
    this.#waiting.add(resolve);
    signal?.addEventListener("abort", leave);
    const timer = ms === undefined ? undefined : setTimeout(leaveAs, ms, "late");
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", leave);
      clearTimeout(timer);
    }
  }

  /** Works as soon as it has a turn. @throws The signal's reason if it aborts before. */
  async run<T>(work: () => Awaitable<T>, signal?: AbortSignal): Promise<T> {
    if ((await this.take(undefined, signal)) !== "turn") signal?.throwIfAborted();
    try {
      return await work();
    } finally {
      this.give();
    }
  }

  /** How many wait for a turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The turn is over. */
  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next("turn");
    }
  }

  /** Sends away everybody who waits. */
  end(): void {
    for (const next of this.#waiting) next("ended");
    this.#waiting.clear();
  }
}
