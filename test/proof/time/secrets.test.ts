/** Rows: what the time of an answer tells of a secret. */
import { expect, test } from "bun:test";
import { includesSecret } from "../../../src/lib/net/in/credentials";

/** As long as a header may carry: what an early exit saves is the more, the longer the key. */
const secret = "k".repeat(14_000);
const almost = `${secret.slice(0, -1)}x`;
const wrong = `x${secret.slice(1)}`;

/** A comparison as nobody should write it. */
function early(sent: readonly string[], [known = ""]: readonly string[]): boolean {
  const [tried = ""] = sent;
  for (let at = 0; at < known.length; at++) if (tried.charCodeAt(at) !== known.charCodeAt(at)) return false;
  return tried.length === known.length;
}

/** Median microseconds of each candidate's tries, one after the other in turns, so that whatever else goes on meets all alike. */
function medians(compare: typeof includesSecret, candidates: string[], tries: number, known = [secret]): number[] {
  const times = candidates.map(() => [] as number[]);
  for (let turn = 0; turn < tries; turn++)
    for (const [at, candidate] of candidates.entries()) {
      const startedAt = Bun.nanoseconds();
      compare([candidate], known);
      times[at]!.push(Bun.nanoseconds() - startedAt);
    }
  return times.map((each) => each.sort((one, other) => one - other)[tries / 2]! / 1000);
}

test("20,000 tries with all of a key but its end take as long as with none of it", () => {
  const naive = medians(early, [almost, wrong], 2000);
  const seen = naive[0]! - naive[1]!;
  // Else this could not tell one from the other.
  expect(seen).toBeGreaterThan(2);
  const [right = 0, none = 0, again = 0] = medians(includesSecret, [almost, wrong, wrong], 20_000 / 2);
  expect(Math.abs(right - none)).toBeLessThan(Math.abs(again - none) + seen / 4);
});

test("which of many keys is right makes no difference either", () => {
  const keys = Array.from({ length: 200 }, (_, at) => `key-${at}-${"x".repeat(40)}`);
  const [first = 0, last = 0, none = 0] = medians(
    includesSecret,
    [keys[0]!, keys.at(-1)!, "key-of-nobody"],
    1_000,
    keys,
  );
  expect(first / last).toBeWithin(0.8, 1.25);
  expect(none / last).toBeWithin(0.8, 1.25);
});
