/**
 * The time by which rows grow old. A wall clock that was set wrong must not make a day's rows look weeks old: a leap ahead
 * counts only when it has lasted.
 */
export interface SteadyClockParts {
  /** Wall clock, Unix ms. */
  now(): number;
  /** A clock that never leaps, ms; it may stand still while the machine sleeps. */
  monotonic(): number;
  /** Unix ms of the last moment that somebody wrote down before us, where that is so long ago as to be doubtful. */
  lastKnown?: number;
}

const hour = 3_600_000;
/** So much ahead of the monotonic clock is no leap. */
const tolerance = hour;
/** So long by the monotonic clock must a leap last: a machine that has slept only keeps rows a day longer. */
const lastsFor = 24 * hour;

/** @returns Unix ms: the wall clock's, or what it would be without its leap. */
export function openSteadyClock({ now, monotonic, lastKnown }: SteadyClockParts): () => number {
  let anchor = { wall: lastKnown ?? now(), at: monotonic() };
  let leptAt: number | undefined;
  return () => {
    const [wall, at] = [now(), monotonic()];
    const expected = anchor.wall + (at - anchor.at);
    if (wall - expected > tolerance) {
      leptAt ??= at;
      if (at - leptAt < lastsFor) return expected;
    }
    leptAt = undefined;
    anchor = { wall, at };
    return wall;
  };
}
