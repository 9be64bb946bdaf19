#!/usr/bin/env -S bun --no-env-file --config=/dev/null --tsconfig-override=/dev/null
/** Names the commands, their options and exit codes; the work is done elsewhere. 0 done, 1 failed, 2 wrong usage. */
import { version } from "../package.json";
import { startAgainWithSettings } from "./launch";

const arguments_ = process.argv.slice(2);
// Before anything heavy is loaded: the answer, or the process this one becomes, should not wait for it.
if (arguments_.length === 1 && /^(?:--version|-v)$/.test(arguments_[0]!)) {
  console.log(version);
} else {
  if (arguments_[0] === "start") startAgainWithSettings();
  // Files made from here on are the owner's alone.
  process.umask(0o077);
  const { runCommand } = await import("./cli/commands");
  // A kept connection or a waiting timer is no reason to stay.
  process.exit(await runCommand(arguments_, version));
}
