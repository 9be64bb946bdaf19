/** What `dragoman --help` and the help of a command print. */

import { clientIn } from "./client-named";
import { type Command, callOf, common, familyOf, type Group, usageOf } from "./command";
import { didYouMean } from "./did-you-mean";
import { typedName } from "./installation";
import { table, wrapped } from "./layout";
import { print, styled } from "./terminal";
import { UsageError } from "./usage-error";

const about = "dragoman puts one local address in front of your GitHub Copilot subscription, for every coding tool.";

const examples: readonly (readonly [call: string, effect: string])[] = [
  ["start --demo", "no account needed"],
  ["auth", "sign in"],
  ["connect claude-code --write", "set up a tool"],
];

/** Prints the help of a command, of the commands with this first word, or of all. @throws UsageError if there are none */
export function showHelp(words: readonly string[], groups: readonly Group[]): number {
  const commands = groups.flatMap((group) => group.commands);
  const [first, second] = words;
  const family = familyOf(commands, first);
  const own = commands.find(({ name }) => name === words.join(" "));
  if (first === undefined) print(overview(groups));
  else if (own) print(commandHelp(own, commands));
  else if (family.length > 0 && second === undefined)
    print(
      ...table(
        family.map((command) => [`dragoman ${callOf(command)}`, `${command.about}.`]),
        { heads: false },
      ),
    );
  else throw noCommand(commands, first, second);
  return 0;
}

/** What to say where no command begins with these words. */
export function noCommand(commands: readonly Command[], first: string, second: string | undefined): UsageError {
  const family = familyOf(commands, first);
  const names = family.map(({ name }) => `\`dragoman ${name}\``).join(", ");
  if (family.length > 0 && second === undefined)
    return new UsageError(`\`${first}\` needs another word; there ${family.length === 1 ? "is" : "are"} ${names}.`);
  const word = family.length > 0 ? `${first} ${second}` : first;
  const list = names === "" ? "`dragoman --help` lists all commands." : `There are ${names}.`;
  const meant =
    second !== undefined && family.length > 0
      ? didYouMean(
          second,
          family.flatMap(({ name }) => name.split(" ").slice(1)),
          `dragoman ${first} `,
        )
      : didYouMean(
          first,
          commands.flatMap(({ name }) => [name, name.split(" ")[0]!]),
          "dragoman ",
        );
  const tool = clientIn(first);
  const starts = tool === undefined ? "" : ` \`dragoman run ${tool}\` starts that tool with dragoman.`;
  return new UsageError(`There is no command \`${word}\`.${meant}${starts} ${list}`);
}

/** The commands by groups, a line for each first word; the last group by its names alone. */
function overview(groups: readonly Group[]): string {
  const others = groups.at(-1)!;
  const rowsWith = (nameOf: typeof wholeName) =>
    groups.slice(0, -1).flatMap(({ title, commands }) =>
      firstWords(commands).map((first, at) => {
        const family = familyOf(commands, first);
        return [at === 0 ? styled("bold", title) : "", nameOf(family, first), briefOf(family)];
      }),
    );
  const titleWidth = Math.max(...groups.map(({ title }) => title.length));
  const rows = rowsWith(wholeName);
  const whole = aligned(rows);
  return [
    wrapped(about),
    "",
    ...(whole.length > rows.length ? aligned(rowsWith(shortName)) : whole),
    ...aligned([[styled("bold", others.title.padEnd(titleWidth)), firstWords(others.commands).join(", ")]]),
    "",
    ...aligned(examples.map(([call, effect]) => [`${typedName()} ${call}`, effect])),
    "",
    wrapped("`dragoman help <command>` shows the options of a command."),
  ].join("\n");
}

const firstWords = (commands: readonly Command[]) => [...new Set(commands.map(({ name }) => name.split(" ")[0]!))];

/** `key add, ls, rm` */
function wholeName(family: readonly Command[], first: string): string {
  const second = family.flatMap(({ name }) => name.split(" ")[1] ?? []);
  return `${first} ${second.join(", ")}`.trimEnd();
}

/** `key …`, where there is no room for more. */
const shortName = (family: readonly Command[], first: string) => (family.length > 1 ? `${first} …` : first);

const briefOf = (family: readonly Command[]) =>
  family.find(({ brief }) => brief !== undefined)?.brief ?? family[0]!.about;

/** What a command does, its options, and the commands that begin with the same word. */
export function commandHelp(command: Command, commands: readonly Command[]): string {
  const options = Object.entries({ ...command.options, ...common });
  const others = familyOf(commands, command.name.split(" ")[0]).filter((other) => other !== command);
  return [
    wrapped(`${command.about}.`),
    "",
    styled("bold", "Usage"),
    `  $ dragoman ${callOf(command)}`,
    "",
    styled("bold", "Options"),
    ...aligned(options.map(([name, option]) => [usageOf(name, option), option.about + usualOf(option.usual)])),
    ...(others.length === 0
      ? []
      : [
          "",
          styled("bold", "See also"),
          ...aligned(others.map((other) => [`dragoman ${callOf(other)}`, other.about])),
        ]),
    "",
  ].join("\n");
}

const aligned = (rows: readonly (readonly string[])[]) => table(rows, { indent: 2, heads: false });

const usualOf = (usual: string | undefined) => (usual === undefined ? "" : ` (default: ${usual})`);
