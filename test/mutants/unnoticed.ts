/** Changes that no test has to notice, each with the reason: `unnoticed.txt`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Unnoticed {
  file: string;
  /** As `bun run test:mutations` prints it. */
  change: string;
  reason: string;
}

/** Behind `#` stands a reason, below it each file, and below that, behind two spaces, its changes. */
function listedIn(text: string): Unnoticed[] {
  let [reason, file] = ["", ""];
  return text.split("\n").flatMap((line) => {
    if (line.startsWith("  ")) return { file, change: line.slice(2), reason };
    if (line.startsWith("# ")) reason = line.slice(2);
    else if (line !== "") file = line;
    return [];
  });
}

export const unnoticed: readonly Unnoticed[] = listedIn(readFileSync(join(import.meta.dir, "unnoticed.txt"), "utf8"));
