/**
 * fast-check with one seed for all properties of a run: `SEED`, or a new one. A failing property prints it, and
 * `test/run.ts` gives all files the same. The check tries a fifth of the inputs that the proof tier and `test:fuzz` try, and a
 * part of the rows of the longest tables; each run draws others.
 */
import fc from "fast-check";
import { limitMs } from "./limit";
import { proof } from "./proof";

/**
 * As many of so many random inputs as this run tries.
 * @param part The check tries one in so many: more where an input costs a tenth of a second or more.
 */
export const triesOf = (inputs: number, part = 5): number => (proof ? inputs : Math.ceil(inputs / part));

export const seed = Number(process.env.SEED ?? Math.trunc(Math.random() * 2 ** 31));

fc.configureGlobal({
  seed,
  numRuns: triesOf(100),
  // A busy machine tries fewer inputs, and does not take that for a failure: the rest of a test's time is for the last input.
  interruptAfterTimeLimit: (limitMs * 2) / 3,
  reporter: (run) => {
    if (!run.failed) return;
    const again = `Again: ${proof ? "PROOF=1 " : ""}SEED=${seed} bun test/run.ts ${Bun.main.slice(process.cwd().length + 1)}`;
    throw new Error(`${fc.defaultReportMessage(run)}\n${again}`, { cause: run.errorInstance });
  },
});

/** Random choices, the same ones for the same seed and name (mulberry32). */
export function openChance(name: string) {
  let state = Bun.hash.crc32(name, seed) | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    /** At least 0 and below 1. */
    next,
    below,
    pick: <T>(...values: T[]): T => values[below(values.length)]!,
    maybe: (share: number) => next() < share,
  };
}
export type Chance = ReturnType<typeof openChance>;

/**
 * The rows of a long table that this run tries, in their order; the proof tier tries all.
 * @param name Of the table. @param part One in so many is tried.
 */
export function drawn<T>(name: string, rows: readonly T[], part = 3): T[] {
  // One of each so many neighbours, which are most alike.
  const first = openChance(name).below(part);
  return proof ? [...rows] : rows.filter((_, at) => at % part === first);
}

export default fc;
