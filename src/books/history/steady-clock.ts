/**
 * The clock that decides which rows are too old. A wall clock that is set wrong for a while must not make all rows look
 * weeks old, so a jump ahead counts only after it has lasted for a day.
 */
import { dayMs, hourMs } from "../../lib/format";

interface SteadyClockParts {
  /** Wall clock, Unix ms. */
  now(): number;
  /** A monotonic clock, ms; it may stop while the machine sleeps. */
  monotonic(): number;
  /** Unix ms of the last time that an earlier process recorded, if it is so long ago that the wall clock may be wrong. */
  lastKnown?: number;
}

/** The wall clock may be this far ahead of the monotonic clock. */
const toleranceMs = hourMs;
/** How long a jump must last by the monotonic clock. A machine that slept keeps its rows at most a day longer. */
const minJumpMs = dayMs;

/** @returns Unix ms by the wall clock, or what it would show without the jump. */
export function openSteadyClock({ now, monotonic, lastKnown }: SteadyClockParts): () => number {
  let anchor = { wall: lastKnown ?? now(), at: monotonic() };
  let jumpedAt: number | undefined;
  return () => {
    const [wall, at] = [now(), monotonic()];
    const expected = anchor.wall + (at - anchor.at);
    if (wall - expected > toleranceMs) {
      jumpedAt ??= at;
      if (at - jumpedAt < minJumpMs) return expected;
    }
    jumpedAt = undefined;
    anchor = { wall, at };
    return wall;
  };
}
