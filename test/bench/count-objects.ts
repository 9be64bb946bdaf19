/** Preloaded by `request-objects.ts`: at each SIGUSR2 the process writes how many objects of each type it has. */
import { heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

const path = process.env.COUNTED_OBJECTS!;

process.on("SIGUSR2", () => {
  writeFileSync(`${path}.new`, JSON.stringify(heapStats().objectTypeCounts));
  renameSync(`${path}.new`, path);
});
