import type { Awaitable } from "../../src/lib/awaitable";

/** Longer than anything takes that ends at all, on a busy machine too, and less than a test may take. */
export const patienceMs = 45_000;

/**
 * Waits until something is true.
 * @param what What becomes true, as a statement: where it does not, the test fails with it.
 */
export async function until(condition: () => Awaitable<boolean>, what: string): Promise<void> {
  for (const startedAt = performance.now(); !(await condition()); await Bun.sleep(10))
    if (performance.now() - startedAt > patienceMs) throw new Error(`It did not become true: ${what}.`);
}

/** Waits until a number has not changed for 400 ms. */
export async function untilStill(read: () => number): Promise<void> {
  let [last, since] = [read(), performance.now()];
  await until(() => {
    if (read() !== last) [last, since] = [read(), performance.now()];
    return performance.now() - since >= 400;
  }, "the number stands still");
}
