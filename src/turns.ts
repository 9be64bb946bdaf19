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
   * @param left Milliseconds that this may still take, as of now; without it, as long as it takes.
   * @returns `silent` if nothing is left, `ended` after `end`.
   */
  async take(left?: () => number): Promise<"turn" | "silent" | "ended"> {
    if (this.#free > 0) {
      this.#free -= 1;
      return "turn";
    }
    const { promise, resolve } = Promise.withResolvers<"turn" | "ended" | "silent">();
    let timer: Timer | undefined;
    const look = (ms: number) => {
      if (ms > 0) timer = setTimeout(() => look(left!()), ms);
      else resolve("silent");
    };
    this.#waiting.add(resolve);
    if (left) look(left());
    try {
      return await promise;
    } finally {
      this.#waiting.delete(resolve);
      clearTimeout(timer);
    }
  }

  /** Works as soon as it has a turn. */
  async run<T>(work: () => Awaitable<T>): Promise<T> {
    await this.take();
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
