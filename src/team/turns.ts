/** Turns at a number of connections, in the order of who asked. A question that waits here takes none of the database's time. */
export interface Turns {
  /**
   * Waits for a turn.
   * @param left Milliseconds that this may still take, as of now: more when the database has answered somebody meanwhile.
   * @returns `silent` if nothing is left, `ended` after `end`.
   */
  take(left: () => number): Promise<"turn" | "silent" | "ended">;
  /** The turn is over. */
  give(): void;
  /** Sends away everybody who waits. */
  end(): void;
}

export function openTurns(count: number): Turns {
  let free = count;
  const waiting = new Set<(outcome: "turn" | "ended") => void>();
  return {
    async take(left) {
      if (free > 0) {
        free -= 1;
        return "turn";
      }
      const { promise, resolve } = Promise.withResolvers<"turn" | "ended" | "silent">();
      let timer: Timer;
      const look = () => {
        const ms = left();
        if (ms > 0) timer = setTimeout(look, ms);
        else resolve("silent");
      };
      waiting.add(resolve);
      look();
      try {
        return await promise;
      } finally {
        waiting.delete(resolve);
        clearTimeout(timer!);
      }
    },
    give() {
      const [next] = waiting;
      if (next === undefined) free += 1;
      else {
        waiting.delete(next);
        next("turn");
      }
    },
    end() {
      for (const next of waiting) next("ended");
      waiting.clear();
    },
  };
}
