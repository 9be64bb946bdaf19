/** Every command of the command line, in the order of the help. A command's work is in a file that its row loads. */
import type { Command, Group } from "./command";
import { accountCommands } from "./commands/accounts";
import { runCommands } from "./commands/run";
import { teamCommands } from "./commands/team";
import { limitCommands, toolCommands } from "./commands/tools";
import { otherCommands, upkeepCommands } from "./commands/upkeep";

export const groups: readonly Group[] = [
  runCommands,
  accountCommands,
  toolCommands,
  limitCommands,
  teamCommands,
  upkeepCommands,
  otherCommands,
];

export const commands: readonly Command[] = groups.flatMap((group) => group.commands);
