import { setImmediate } from "node:timers/promises";

/** Resolves when what has arrived meanwhile was handled: Bun begins the first turn before it looks for that. */
export async function othersFirst(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
