/** How long something holds the thread that serves everybody: by its own work, and not by what a busy machine adds. */
import { existsSync, readFileSync } from "node:fs";

const ownTime = "/proc/thread-self/schedstat";
const isKnown = existsSync(ownTime);

/** Milliseconds that the calling thread has worked so far. Where the system does not tell (Linux does), the usual clock. */
export const workedMs = (): number =>
  isKnown ? Number(readFileSync(ownTime, "latin1").split(" ", 1)[0]) / 1e6 : performance.now();

/** Milliseconds for which nothing foreign may hold the thread. */
export const mostHeldMs = 50;

/** What a call that ends at once works, in ms: if it is much, the least of a few, for some of them compile or tidy up as well. */
export function workOf(call: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < (least < mostHeldMs / 2 ? 1 : 8); turn++) {
    const before = workedMs();
    call();
    least = Math.min(least, workedMs() - before);
  }
  return least;
}

/** Texts of any length that patterns stumble over. */
export const hostileTexts: Record<string, (length: number) => string> = Object.fromEntries(
  Object.entries({
    "passwords in addresses": ["://", "a:", ""],
    "beginnings of addresses": ["", "http://", ""],
    "dots after an address": ["http://x", ".", "x"],
    "exclamation marks after an address": ["http://x", "!", "x"],
    "closing brackets": ["http://x", ")", "x"],
    "opening brackets": ["", "[", ""],
    "braces that are nested": ["", '{"a":', ""],
    "beginnings of tags": ["", "<", ""],
    ampersands: ["", "&", ""],
    backslashes: ["", "\\", ""],
    "escapes of JSON": ["", "\\u0041", ""],
    "quotation marks": ["", '"', ""],
    digits: ["", "7", ""],
    "digits with an exponent": ["", "1e", ""],
    spaces: ["x", " ", "x"],
    "spaces before a letter": ["", " ", "x"],
    "beginnings of sessions": ["", "_session_", "!"],
    "line breaks": ["", "\n", "x"],
    "tabs after the word token": ["token", "\t", "!"],
    "words after the word token": ["token a", "-a", "1"],
    "the word token": ["", "token ", ""],
    "quotes after the name of a key": ["x-api-key", '":', ""],
    "letters in one line": ["", "a", ""],
    "letters beyond the first plane": ["", "😀", ""],
    "Chinese letters": ["", "字", ""],
    "combining marks": ["a", "\u0301", ""],
    "control characters": ["", "\u0000", ""],
    ellipses: ["", "… ", "x"],
  }).map(([name, [before = "", again = "", after = ""]]) => [
    name,
    (length: number) =>
      before + again.repeat(Math.max(0, Math.floor((length - before.length - after.length) / again.length))) + after,
  ]),
);

/** The longest time in ms for which something holds the thread between two turns of its loop. */
export async function longestHeld(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = workedMs();
  let isOver = false;
  const turn = () => {
    const now = workedMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  await new Promise(setImmediate);
  return longest;
}
