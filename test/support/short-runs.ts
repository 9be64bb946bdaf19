/**
 * Settings of Bun for processes that last seconds, not days; the proof tier measures without them. A test runs little code
 * often enough to gain from compiling it: with both compilers later, and the collector on no threads of its own, a run takes
 * some 25 % less CPU. Memory is kept, which saves a third of the system's time, and no timer looks for garbage.
 */
import { settingsOf } from "../../src/lib/launch";

/** Bun exits if it does not know an option of its engine. */
const knowsOptions = Object.keys(settingsOf(Bun.version)).some((name) => name.startsWith("BUN_JSC_"));

export const shortRuns: Readonly<Record<string, string>> = {
  MIMALLOC_PURGE_DELAY: "-1",
  BUN_GC_TIMER_DISABLE: "1",
  ...(knowsOptions && {
    BUN_JSC_thresholdForJITAfterWarmUp: "5000",
    BUN_JSC_thresholdForJITSoon: "1000",
    BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
    BUN_JSC_thresholdForOptimizeSoon: "10000",
    BUN_JSC_useConcurrentGC: "0",
  }),
};

/** Those that this process has, for the processes that it starts. The program's own settings it gives itself, as anywhere. */
export const inherited = Object.fromEntries(
  Object.keys(shortRuns).flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
);
