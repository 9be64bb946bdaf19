/** The types of a client's set-up. */
import { isObject } from "../lib/json";
import type { Beside, Caveat, Look } from "./caveats";
import { type Edit, type Path, settingAt } from "./edit";
import type { SettingsFormat } from "./formats";
import type { Surroundings } from "./locate";
import type { Choice, ClientModel, ToolDialect } from "./models";
import type { Shell } from "./shells";

/** The input of a set-up. */
export interface Connection {
  /** `http://127.0.0.1:4141`, without a slash at its end. */
  url: string;
  /** The client key, if the server requires one. */
  key?: string;
  models: Choice;
  /** The command that prints a key, for a client that asks for it again and again; in place of `key`. */
  keyCommand?: string;
  /** The model to use instead of the client's default. */
  model?: ClientModel;
  /** How the client's own settings name it, if it is theirs. */
  named?: string;
  /** Whether the server has a model of this name. */
  serves?(name: string): boolean;
  /** The command that prints what the client's session costs, for it to show. */
  statusline?: string;
}

export interface ClientSetup {
  /** The model that the client will use. */
  model: ClientModel;
  /** Changes of the client's settings file. */
  edits: readonly Edit[];
  /** Environment variables: an alternative to the file, or all settings if the client has no file. */
  variables: Record<string, string>;
  /** Code for programs, commands for shells, and files that `connect` does not write. */
  programs: readonly Snippet[];
  /** The command to run afterwards. */
  command?: string;
  /** What to do when it runs, said after {@link command}. */
  hint?: string;
  note?: string;
}

/** A setting without which the client works, but below its strength. */
export interface Switch {
  path: Path;
  value: unknown;
  /** What it does, as a sentence without its subject: `Looks up …`. */
  does: string;
  /** Whether another value that the person chose turns it on too; only the value of `connect` does if it is missing. */
  isOn?(value: unknown): boolean;
}

export interface Snippet {
  /** The name of a file, with its path from `~`, or of a shell or a language. */
  name: string;
  text: string;
  /** Only for shells. */
  shell?: Shell;
}

/** A server that a client calls. */
export interface Destination {
  address: unknown;
  /** Where the key for it is in the settings; missing if it is kept elsewhere. */
  keyAt?: Path;
}

/** Settings that a client takes besides its own: they send the header that names a project. */
export interface ProjectSettings {
  /** @param folder The one to work in. @param name Of the project. */
  locate(around: Surroundings, folder: string, name: string): string;
  edits(header: string, name: string): readonly Edit[];
  /** How the client is started with them, if it does not take them by itself. */
  command?(name: string): string;
}

export interface Client {
  name: string;
  /** The client's dialects. */
  speaks: string;
  dialect: ToolDialect;
  /** Matches the client's User-Agent in the history. */
  known: RegExp;
  file?: {
    format: SettingsFormat;
    locate(around: Surroundings): string;
    /** A second file of the client. Paths that begin with `at` lead into it. */
    second?: { at: string; format: SettingsFormat; locate(around: Surroundings): string };
    /** The servers that the client calls with these settings, in this environment. */
    destinations(settings: Record<string, unknown>, env: Surroundings["env"]): Destination[];
    /** Other settings that affect the connection to dragoman. */
    caveats?(settings: Record<string, unknown>, look: Look): Caveat[];
    /** Further files of the client that affect it. @param file The path of its settings file. */
    beside?(around: Surroundings, file: string): Beside[];
    /** The model that the settings name and dragoman may have; undefined if none is named. */
    model?(settings: Record<string, unknown>): unknown;
    /** Other names by which the client calls models. */
    aliases?: Record<string, Exclude<keyof Choice, "all">>;
    /** Settings that the client changes when the person chooses another model in it: `--undo` takes these back as well. */
    choices?: readonly Path[];
    /** For a client that rewrites its file at each run: the settings without the client's own state. */
    bookkeeping?(settings: Record<string, unknown>): unknown;
  };
  /** Missing where a project needs an address of its own. */
  project?: ProjectSettings;
  /** What `connect` turns on besides. */
  switches?: readonly Switch[];
  /** It runs a command for its key. */
  asksForKey?: true;
  setUp(place: Connection): ClientSetup;
}

/** Variables that the client's file cannot replace. */
export function variablesBeside({ variables, edits }: ClientSetup): string[] {
  const names = new Set(edits.map(({ path }) => path.at(-1)));
  return Object.keys(variables).filter((name) => !names.has(name));
}

/** Most clients require a key, and report a missing sign-in without one. */
export const noKey = "unused";

/** The prompt limit, for clients that have one number for input and output. */
export const windowOf = ({ prompt, context }: ClientModel): number | undefined => prompt ?? context;

/** Without undefined members. */
export const known = <T extends Record<string, unknown>>(record: T): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

/** The environment of a client that needs only its file. */
export const nothing = { variables: {}, programs: [] };

/** A YAML file for a person to make or to add to: `connect` does not write it. @param name Its path, from `~`. */
export const yamlFile = (name: string, settings: object): Snippet => ({
  name,
  text: Bun.YAML.stringify(settings, null, 2),
});

/** The values of a record or a list. */
export const each = (value: unknown): unknown[] => namedIn(value).map(([, item]) => item);

/** The values of a record or a list, each with the step of a path that leads to it. */
export function namedIn(value: unknown): [Path[number], unknown][] {
  if (isObject(value)) return Object.entries(value);
  return Array.isArray(value) ? value.map((item) => [{ name: String(settingAt(item, ["name"])) }, item]) : [];
}

/** The destinations of a record or list of providers at `path`. @param names The members with the address and the key. */
export const destinationsAt = (settings: unknown, path: Path, ...names: [address: Path, key: Path]): Destination[] =>
  namedIn(settingAt(settings, path)).map(([step, provider]) => ({
    address: settingAt(provider, names[0]),
    keyAt: [...path, step, ...names[1]],
  }));
