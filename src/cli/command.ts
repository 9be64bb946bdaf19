/** What a row of the table of commands consists of. Parsing, help, completion and the table in README.md follow from the rows. */
import type { Environment } from "../config/environment";

/** An option of a command. Its name in the table is camel case: `logFile` is `--log-file`, `noColor` is `--no-color`. */
export interface Option<Value = unknown> {
  /** The value as help names it: `<number>`, or `[file]` if it may be left out; undefined for a switch. */
  readonly value?: string;
  readonly about: string;
  /** One letter: `y` for `-y`. */
  readonly short?: string;
  /** What holds without the option, for help. */
  readonly usual?: string;
  /** Other options of the command, by their names in the table, without which it is refused: it would have no effect. */
  readonly besides?: readonly string[];
  /** The values that completion offers. */
  readonly values?: () => readonly string[] | Promise<readonly string[]>;
  /** @param given True without a value; undefined without the option. @throws UsageError */
  read(given: string | true | undefined): Value;
}

type More = Pick<Option, "short" | "usual" | "values">;

/** A switch. */
export const flag = (about: string, short?: string): Option<boolean> => ({
  about,
  short,
  read: (given) => given === true,
});

/** An option with a value, which is taken as it was typed. */
export const text = (value: `<${string}>`, about: string, more: More = {}): Option<string | undefined> =>
  parsed(value, about, (given) => given, more);

/** An option with a value. @param read Reads the value, or undefined without the option. @throws UsageError */
export const parsed = <Value>(
  value: `<${string}>`,
  about: string,
  read: (given: string | undefined) => Value,
  more: More = {},
): Option<Value> => ({ value, about, ...more, read: (given) => read(given === true ? undefined : given) });

/** An option that is given beside others of its command. @param about Behind “With --deep:” and the like. */
export const beside = <Value>(others: readonly string[], option: Option<Value>): Option<Value> => ({
  ...option,
  about: `With ${others.map(longOf).join(" ")}: ${option.about}`,
  besides: others,
});

/** An option whose value may be left out. */
export const optional = <Value>(
  value: `[${string}]`,
  about: string,
  read: (given: string | true | undefined) => Value,
): Option<Value> => ({ value, about, read });

/** What every command gets. */
export interface Basis {
  version: string;
  /** The words after the command, as they were typed. */
  words: readonly string[];
  groups: readonly Group[];
  /** Read when it is asked for. @throws UsageError */
  readonly environment: Environment;
}

type ArgumentIn<Argument extends string> = Argument extends `<${infer Name}>`
  ? { [K in Name]: string }
  : Argument extends `[...${infer Name}]`
    ? { [K in Name]: string[] }
    : Argument extends `[${infer Name}]`
      ? { [K in Name]?: string }
      : unknown;

type OptionsIn<Options> = { [Name in keyof Options]: Options[Name] extends Option<infer Value> ? Value : never };

export interface Command {
  /** One word, or two: `key add`. */
  readonly name: string;
  /** `<name>`, `[name]` if it may be left out, `[...name]` for any number of words; empty for none. */
  readonly argument: string;
  /** The values of the argument that completion offers. */
  readonly values?: Option["values"];
  /** What it does, as a sentence without its period. */
  readonly about: string;
  /** In at most 36 characters what all commands with this first word do, for the list of commands. */
  readonly brief?: string;
  readonly options: Readonly<Record<string, Option>>;
  /** @returns The exit code. */
  run(given: Basis): number | Promise<number>;
}

/** The row of a command. What `run` gets has a member for each option and for the argument. */
export const command = <const Argument extends string, Options extends Record<string, Option>>(
  row: Omit<Command, "argument" | "options" | "run"> & {
    argument?: Argument;
    options?: Options;
    run(given: Basis & OptionsIn<Options> & ArgumentIn<Argument>): number | Promise<number>;
  },
): Command => ({ argument: "", options: {}, ...row }) as Command;

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** `logFile` → `log-file` */
const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** `-y, --yes`, `--port <number>` */
export const usageOf = (name: string, option: Option): string =>
  `${spellingsOf(name, option).join(", ")} ${option.value ?? ""}`.trimEnd();

/** `-y` and `--yes` */
export const spellingsOf = (name: string, { short }: Option): string[] => [
  ...(short === undefined ? [] : [`-${short}`]),
  longOf(name),
];

/** `--log-file` */
const longOf = (name: string) => `--${kebab(name)}`;

/** `key add <name>` */
export const callOf = ({ name, argument }: Command): string => `${name} ${argument}`.trimEnd();

/** Options that each command has. */
export const common: Readonly<Record<string, Option<boolean>>> = {
  help: flag("Show help", "h"),
  version: flag("Show the version", "v"),
};

/** The commands whose first word this is. */
export const familyOf = (commands: readonly Command[], first: string | undefined): Command[] =>
  commands.filter(({ name }) => name === first || name.startsWith(`${first} `));
