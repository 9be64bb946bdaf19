/** Turns at a number of connections, in the order of who asked. A question that waits here takes none of the database's time. */
export class Turns {
  #free: number;
  readonly #waiting = new Set<(outcome: "turn" | "ended") => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a turn.
   * @param left Milliseconds that this may still take, as of now: more when the database has answered somebody meanwhile.
   * @returns `silent` if nothing is left, `ended` after `end`.
   */
  async take(left: () => number): Promise<"turn" | "silent" | "ended"> {
    if (this.#free > 0) {
      this.#free -= 1;
      return "turn";
    }
    const { promise, resolve } = Promise.withResolvers<"turn" | "ended" | "silent">();
    let timer: Timer;
    const look = () => {
      const ms = left();
      if (ms > 0) timer = setTimeout(look, ms);
      else resolve("silent");
    };
    this.#waiting.add(resolve);
    look();
    try {
      return await promise;
    } finally {
      this.#waiting.delete(resolve);
      clearTimeout(timer!);
    }
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
