/** A clock for a machine that does other things too: other tests, or the rest of what a test started. */
import { existsSync, readFileSync } from "node:fs";

const pressure = "/proc/pressure/cpu";
const isKnown = existsSync(pressure);

/**
 * Milliseconds on a clock that stands still while a process of this machine waits for a core. Between two readings lies what
 * something took by itself, and what a busy machine added is left out. Where the system does not tell (Linux does), it is the
 * usual clock.
 */
export function unloadedNow(): number {
  return performance.now() - (isKnown ? waitedMs() : 0);
}

/** How long some process was ready to run, and others ran, since the machine was started. */
function waitedMs(): number {
  return Number(/^some .*total=(\d+)/.exec(readFileSync(pressure, "latin1"))![1]) / 1000;
}

/** Gives something time to happen that must not: so many ms of the clock above, and never much longer than a busy machine needs. */
export async function unloadedSleep(ms: number): Promise<void> {
  const [startedAt, unloadedAt] = [performance.now(), unloadedNow()];
  for (let left = ms; left > 0 && performance.now() - startedAt < 10 * ms; left = ms - (unloadedNow() - unloadedAt))
    await Bun.sleep(left);
}
