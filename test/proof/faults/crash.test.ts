/** Rows: the program ends, or the disk fails, at each change that a store makes on the disk. */
import { disturb, storeNames } from "../../support/crash";
import { testWith } from "../../support/sandbox";

for (const name of storeNames)
  for (const error of [undefined, "EIO", "ENOSPC"] as const)
    testWith(
      "tracing",
      `${name} can be opened again, with all that was served, whichever change ${error ? `fails with ${error}` : "is the last"}`,
      async () => {
        const changes = await disturb(name, { at: 0 });
        for (let at = 1; at <= changes.length; at += 1) await disturb(name, { at, error });
      },
      300_000,
    );
