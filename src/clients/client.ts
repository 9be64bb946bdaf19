/** What a client's set-up consists of, whichever client it is. */
import { isObject } from "../json";
import type { Edit } from "./edit";
import type { SettingsFormat } from "./formats";
import type { Surroundings } from "./locate";
import type { Choice, ClientDialect, ClientModel } from "./models";
import type { Shell } from "./shells";

/** What a set-up is made from. */
export interface Connection {
  /** `http://127.0.0.1:4141`, without a slash at its end. */
  url: string;
  /** The client key, where one is asked for. */
  key?: string;
  models: Choice;
  /** The one the person asked for, instead of the usual one of this client. */
  model?: ClientModel;
}

export interface ClientSetup {
  /** The one the client will use. */
  model: ClientModel;
  /** What goes into the client's own file. */
  edits: readonly Edit[];
  /** What goes into the environment instead, or, where there is no file, at all. */
  variables: Record<string, string>;
  /** What a program says, or one line of a shell. */
  programs: readonly Snippet[];
  /** What to run then. */
  command?: string;
  note?: string;
}

export interface Snippet {
  /** Of a file, of shells, or of a language. */
  name: string;
  text: string;
  /** Of a shell only: which one. */
  shell?: Shell;
}

export interface Caveat {
  /** As the end of a sentence: `… , but <says>.` */
  says: string;
  /** It goes before our address: the client calls somebody else. */
  overrides: boolean;
}

export interface Client {
  name: string;
  /** What it speaks to us, and what it is tried with. */
  speaks: string;
  dialect: ClientDialect;
  /** Finds its requests by the name it gives itself. */
  known: RegExp;
  file?: {
    format: SettingsFormat;
    locate(around: Surroundings): string;
    /** The addresses that the client calls, as its settings stand. */
    addresses(settings: Record<string, unknown>): unknown[];
    /** What else its settings say that a person who points it here should know. @param isHere Whether an address is ours. */
    caveats?(settings: Record<string, unknown>, isHere: (address: unknown) => boolean): Caveat[];
    /** For a client that writes its file anew at each run: the settings without what it notes there for itself. */
    bookkeeping?(settings: Record<string, unknown>): unknown;
  };
  setUp(place: Connection): ClientSetup;
}

/** Most clients want a key, and say that nobody is signed in without one. */
export const noKey = "unused";

/** For clients that know one number for what goes in and what comes out: what may go in. */
export const windowOf = ({ prompt, context }: ClientModel): number | undefined => prompt ?? context;

/** Without what is unknown. */
export const known = <T extends Record<string, unknown>>(record: T): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

/** For a client that is set up by its file alone. */
export const nothing = { variables: {}, programs: [] };

/** What a record or a list holds. */
export const each = (value: unknown): unknown[] =>
  isObject(value) ? Object.values(value) : Array.isArray(value) ? value : [];
