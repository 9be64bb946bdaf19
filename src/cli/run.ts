/** Runs a command line: finds the command, reads its options, and says in a sentence what cannot be. */
import cac from "cac";
import { readEnvironment } from "../config/environment";
import { ProxyError } from "../lib/errors";
import { printable } from "../lib/logger";
import { type Basis, type Command, callOf, common, familyOf, type Option, spellingsOf, usageOf } from "./command";
import { commands, groups } from "./commands";
import { didYouMean } from "./did-you-mean";
import { Interrupted, print, say } from "./terminal";
import { asUsage, UsageError } from "./usage-error";

/** Loaded only for those who need it: it knows every tool. */
const help = () => import("./help");

/** @returns The exit code: 0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C. */
export async function runCommand(argv: readonly string[], version: string): Promise<number> {
  try {
    return await dispatch(argv, version);
  } catch (thrown) {
    const failure = failureOf(thrown);
    if (!failure) throw thrown;
    const { code, exitCode } = failure;
    // A server's sentence for every client; here a command says the same.
    const message = printable(failure.message.replace("GET /v1/models lists", "`dragoman models` lists"));
    say(`dragoman: ${message}`);
    if (isStartOfProgram(argv)) print(JSON.stringify({ event: "failed", code, message }));
    return exitCode;
  }
}

interface Failure {
  /** For programs; the [documents](README.md#editors-and-scripts) list them. */
  code: string;
  message: string;
  exitCode: number;
}

/** What a person can understand and change; undefined for an error of the program. */
function failureOf(thrown: unknown): Failure | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { message } = thrown;
  if (thrown instanceof UsageError) return { code: "usage", message, exitCode: 2 };
  if (thrown instanceof Interrupted) return { code: "interrupted", message, exitCode: 130 };
  if (thrown instanceof ProxyError) return { code: thrown.details.code ?? "failed", message, exitCode: 1 };
  // A full disk or a folder that is not writable: a stack trace would not help.
  if (!("syscall" in thrown && "path" in thrown)) return undefined;
  return { code: "system", message: `The system refused this: ${message}.`, exitCode: 1 };
}

/** Whether a program waits for the line that `start --json` prints. */
const isStartOfProgram = (argv: readonly string[]): boolean =>
  argv.includes("--json") && argv.find((word) => !word.startsWith("-")) === "start";

async function dispatch(argv: readonly string[], version: string): Promise<number> {
  const at = argv.findIndex((word) => !word.startsWith("-"));
  const options = argv.slice(0, at < 0 ? argv.length : at);
  const [first, ...rest] = argv.slice(options.length);
  const second = rest[0]?.startsWith("-") ? undefined : rest[0];
  const pair = commandNamed(`${first} ${second}`);
  const single = commandNamed(first);
  // `auth list` is a command of `auth` that there is not, rather than an argument that `auth` takes.
  const isOther = single?.argument === "" && second !== undefined && familyOf(commands, first).length > 1;
  if (pair) return runFound(pair, [...options, ...rest.slice(1)], version);
  if (single && !isOther) return runFound(single, [...options, ...rest], version);
  const wants = (name: keyof typeof common) => argv.some((word) => spellingsOf(name, common[name]!).includes(word));
  const ownWords = Object.entries(common).flatMap(([name, option]) => spellingsOf(name, option));
  const unknown = first === undefined ? argv.find((word) => !ownWords.includes(word)) : undefined;
  if (unknown !== undefined)
    throw new UsageError(
      `There is no option \`${unknown}\` without a command. \`dragoman --help\` lists all commands.`,
    );
  if (wants("version")) print(version);
  else if (first === undefined || (wants("help") && second === undefined))
    return (await help()).showHelp(first ? [first] : [], groups);
  else throw (await help()).noCommand(commands, first, second);
  return 0;
}

const commandNamed = (name: string | undefined) => commands.find((command) => command.name === name);

async function runFound(command: Command, words: readonly string[], version: string): Promise<number> {
  const { args, options } = parse(command, words);
  if (options.help !== undefined) {
    print((await help()).commandHelp(command, commands));
    return 0;
  }
  if (options.version !== undefined) {
    print(version);
    return 0;
  }
  const basis: Basis = {
    version,
    words,
    groups,
    get environment() {
      return asUsage(() => readEnvironment(process.env));
    },
  };
  requireKnown(command, options);
  const read = Object.entries(command.options).map(([name, option]) => [
    name,
    option.read(given(name, option, options[nameIn(name)])),
  ]);
  requireOthers(command, options);
  // Not spread: the environment is read only by a command that asks for it.
  return command.run(Object.assign(basis, Object.fromEntries(read), argumentOf(command, args)));
}

interface Parsed {
  args: string[];
  /** By their names as cac has them: in camel case, without `no-`. */
  options: Record<string, unknown>;
}

/** cac reads `0123` as a number and `-` as an option. A mark before each value keeps it as it was typed. */
const mark = "\0";
const marked = (word: string) =>
  /^--?[a-z]/i.test(word) ? word.replace("=", `=${mark}`) : word === "--" ? word : mark + word;
const unmarked = (word: string) => word.replace(mark, "");

function parse(command: Command, words: readonly string[]): Parsed {
  const cli = cac("dragoman");
  for (const [name, option] of Object.entries({ ...command.options, ...common }))
    cli.option(usageOf(name, option), option.about);
  const { args, options } = cli.parse(["", "", ...words.map(marked)], { run: false });
  const { "--": after, ...given } = options;
  return { args: [...args, ...after].map(unmarked), options: given };
}

/** cac has the option `noColor` as `color`, which is true unless it is given. */
const nameIn = (name: string) => (/^no[A-Z]/.test(name) ? name[2]!.toLowerCase() + name.slice(3) : name);

/** What was given of an option, as its `read` takes it. @throws UsageError without a value that it needs */
function given(name: string, option: Option, value: unknown): string | true | undefined {
  if (nameIn(name) !== name) return value === false ? true : undefined;
  const last = [value].flat().at(-1);
  if (last === undefined || last === false) return undefined;
  if (typeof last === "string") {
    const text = unmarked(last);
    // An empty value is often a variable that is not set. Taken for "no value", it would lift a limit unnoticed.
    if (text.trim() !== "") return text;
    throw new UsageError(`${spellingsOf(name, option).at(-1)} is empty: give it a value, or leave it out.`);
  }
  if (!option.value?.startsWith("<")) return true;
  throw new UsageError(`${spellingsOf(name, option).at(-1)} needs a value: ${usageOf(name, option)}.`);
}

/** @throws UsageError for an option that the command has not */
function requireKnown(command: Command, options: Parsed["options"]): void {
  const own = Object.entries({ ...command.options, ...common });
  const known = new Set(own.flatMap(([name, { short }]) => [nameIn(name), short]));
  const unknown = Object.keys(options).find((name) => !known.has(name));
  if (unknown === undefined) return;
  const [typed = unknown] = spellingsOf(unknown, {} as Option);
  const word = unknown.length === 1 ? `-${unknown}` : typed;
  const spellings = own.flatMap(([name, option]) => spellingsOf(name, option)).filter((each) => each.startsWith("--"));
  throw new UsageError(
    `\`dragoman ${command.name}\` has no option \`${word}\`.${didYouMean(word, spellings)} ${helpFor(command)}`,
  );
}

/** @throws UsageError for an option without those beside which alone it has an effect */
function requireOthers({ options: own }: Command, options: Parsed["options"]): void {
  for (const [name, option] of Object.entries(own)) {
    if (options[name] === undefined) continue;
    const missing = option.besides?.filter((other) => options[other] === undefined) ?? [];
    const spelled = missing.map((other) => spellingsOf(other, own[other]!).at(-1)).join(" and ");
    if (spelled !== "") throw new UsageError(`${spellingsOf(name, option).at(-1)} has no effect without ${spelled}.`);
  }
}

const helpFor = ({ name }: Command) => `\`dragoman ${name} --help\` shows its arguments and options.`;

/** The words after the command as its argument. @throws UsageError if there are too few or too many */
function argumentOf(command: Command, args: string[]): Record<string, string | string[]> {
  const { argument } = command;
  const name = argument.replace(/[^\w]/g, "");
  if (argument.startsWith("[...")) return { [name]: args };
  const [first, ...others] = args;
  const needless = argument === "" ? args : others;
  if (needless.length > 0)
    throw new UsageError(`\`dragoman ${callOf(command)}\` takes no \`${needless[0]}\`. ${helpFor(command)}`);
  if (argument.startsWith("<") && first === undefined)
    throw new UsageError(
      `\`dragoman ${command.name}\` needs ${/^[aeiou]/.test(name) ? "an" : "a"} ${name}. ${helpFor(command)}`,
    );
  return first === undefined || argument === "" ? {} : { [name]: first };
}
