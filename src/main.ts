#!/usr/bin/env -S bun --no-env-file --config=/dev/null --tsconfig-override=/dev/null
/** Names the commands, their options and exit codes; the work is done elsewhere. 0 done, 1 failed, 2 wrong usage. */
import { writeSync } from "node:fs";
import { version } from "../package.json";
import { startAgainWithSettings } from "./lib/launch";

const arguments_ = process.argv.slice(2);
// Comes before the imports of the commands, which take time to load.
if (!toldVersion()) {
  if (arguments_[0] === "start") startAgainWithSettings();
  // New files are private to the owner.
  process.umask(0o077);
  const { runCommand } = await import("./cli/run");
  // Exit even if a connection is kept open or a timer is pending.
  process.exit(await runCommand(arguments_, version));
}

/** Where it cannot be written, the command says why. */
function toldVersion(): boolean {
  if (arguments_.length !== 1 || !/^(?:--version|-v)$/.test(arguments_[0]!)) return false;
  try {
    return writeSync(1, `${version}\n`) > 0;
  } catch {
    return false;
  }
}
