/** The config store: loads the file, applies changes, and follows edits by hand. */
import { mkdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Awaitable } from "../lib/awaitable";
import { ProxyError } from "../lib/errors";
import { readPrivate, writePrivate } from "./files";
import { withLock } from "./lock";
import { patched, type Stored } from "./patch";
import { type ConfigReading, fingerprint, readConfig } from "./read-config";
import { type Config, parseConfig } from "./schema";

export type { Stored } from "./patch";

/** Bytes. */
const maxMark = 64;
/** Milliseconds between two checks of the file. An error in it is reported at the second check. */
const checkEvery = 500;

/**
 * The one member whose edits in the file wait for the next start of a server: whoever edits the file should not lock clients
 * out. The API sets it at once, on all servers of the folder: a hash beside the file tells the others that a call set it, so
 * that a key that was revoked at one is refused at all.
 */
const waitingMember = "auth";
const waitingKey = "auth.apiKeys";
const markPath = (path: string) => `${path}.keys`;
const readMark = (path: string) => readPrivate(markPath(path), maxMark);
const markOf = (config: Config) =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(config[waitingMember])).digest("hex");

export interface ConfigStore {
  /** The config in effect, with defaults. Read it at each use: a change replaces the object. */
  readonly current: Config;
  /** The content of the file, without defaults. */
  readonly stored: Stored;
  /** Differs for each text of the file. */
  readonly revision: string;
  /** Why the file is not in effect, as a sentence; undefined if it is. */
  readonly fault: string | undefined;
  /** Keys whose value in the file takes effect only at the next start. */
  readonly waiting: readonly string[];
  /**
   * Merges a patch into the file, validates the result, writes and applies it. After an error, nothing has changed.
   * @throws ProxyError `invalid_request` if a key or value is invalid; `conflict` if the file cannot be read or has another
   * revision; `internal` with the code `config_write_failed` if it cannot be written.
   */
  change(patch: Stored, options?: ChangeOptions): Promise<void>;
  /** Reads now what others have changed. */
  reload(): Awaitable<void>;
  /** Checks the file twice a second from now on. */
  follow(listener: Listener): void;
  close(): void;
}

export interface ChangeOptions {
  /** The revision that the change was made for. */
  revision?: string;
}

export interface Listener {
  /**
   * These members have new values.
   * @param edited The file was edited by hand. `members` is empty if only keys that need a restart were changed.
   */
  changed(members: string[], edited: boolean): void;
  /** The file was edited and is not valid; the previous config stays in effect. */
  refused(sentence: string): void;
  /** The file is valid again, or was removed: a sentence. What holds is not changed by that alone. */
  noted(sentence: string): void;
}

/** Loads the config; a missing file means defaults. Throws `invalid_request` with the file and the position of the error; the file is not changed. */
export function openConfig(path: string): ConfigStore {
  const salt = crypto.getRandomValues(Buffer.alloc(16));
  const revisionOf = (text: string) => new Bun.CryptoHasher("sha256", salt).update(text).digest("hex").slice(0, 16);
  const { config: current, ...file } = readConfig(path, { text: "{}" });
  const pastMark = readMark(path) === markOf(current) ? undefined : fingerprint(markPath(path));
  const held: Held = { ...file, path, current, waiting: [], pastMark };
  let timer: Timer | undefined;
  return {
    get current() {
      return held.current;
    },
    get stored() {
      return held.stored;
    },
    get revision() {
      return revisionOf(held.text);
    },
    get fault() {
      return held.fault;
    },
    get waiting() {
      return held.waiting;
    },
    async change(patch, { revision } = {}) {
      const planned = () => {
        const file = readForChange(held);
        if (revision !== undefined && revision !== revisionOf(file.text)) throw changedMeanwhile();
        return plan(file, patch);
      };
      // Errors are reported before anything is written. A valid change is validated again under the lock.
      planned();
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
        await withLock(`${path}.lock`, () => change(held, patch, planned()));
      } catch (thrown) {
        throw asWriteFailure(thrown);
      }
    },
    reload: () => look(held),
    follow(given) {
      held.listener = given;
      timer ??= setInterval(look, checkEvery, held).unref();
    },
    close() {
      clearInterval(timer);
    },
  };
}

/** The config in effect, and the file as far as it is known. */
interface Held {
  readonly path: string;
  text: string;
  stored: Stored;
  current: Config;
  waiting: string[];
  /** The mark of a call before the start, when the keys had been edited since: it says nothing of later edits. */
  readonly pastMark: string | undefined;
  fault?: string;
  /** The file as it was last read, or found wrong for the second time. */
  seen?: string;
  /** The same, found wrong for the first time; `missing` where there is no file any more. */
  suspect?: string;
  /** The fault was told. */
  isTold?: boolean;
  listener?: Listener;
}

const unfaulted = { fault: undefined, suspect: undefined, isTold: false };

/** @param edited By hand, or by another process. @param setsKeys The client keys of the file hold from now on. */
function hold(held: Held, next: ConfigReading, { edited = false, setsKeys = false }): void {
  const { current: before, isTold, listener } = held;
  const current = setsKeys ? next.config : { ...next.config, [waitingMember]: before[waitingMember] };
  const waiting = Bun.deepEquals(current[waitingMember], next.config[waitingMember]) ? [] : [waitingKey];
  const { text, stored } = next;
  Object.assign(held, { text, stored, current, waiting, ...unfaulted });
  if (isTold) listener?.noted("The config file is valid again.");
  const members = Object.keys(current) as (keyof Config)[];
  const changed = members.filter((member) => !Bun.deepEquals(current[member], before[member]));
  if (changed.length > 0 || (edited && waiting.length > 0)) listener?.changed(changed, edited);
}

/** Reads the file if it is another one than was seen. */
function look(held: Held): void {
  const { path } = held;
  const file = fingerprint(path);
  const mark = fingerprint(markPath(path));
  const print = file && `${file} ${mark}`;
  if (print === held.seen) return;
  if (print === undefined) {
    lookForFile(held);
    return;
  }
  try {
    const now = readConfig(path, held);
    held.seen = print;
    const setsKeys =
      !Bun.deepEquals(held.current[waitingMember], now.config[waitingMember]) &&
      mark !== held.pastMark &&
      readMark(path) === markOf(now.config);
    if (now.text !== held.text || held.fault !== undefined || setsKeys)
      hold(held, now, { edited: !setsKeys, setsKeys });
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    held.fault = withoutFolder(path, thrown.message);
    // An editor may still be writing the file.
    if (print !== held.suspect) {
      held.suspect = print;
      return;
    }
    held.seen = print;
    held.isTold = true;
    held.listener?.refused(thrown.message);
  }
}

/** A file that is missing at a second look, too, was removed: no editor is about to replace it. */
function lookForFile(held: Held): void {
  const isGone = held.suspect === "missing";
  held.suspect = "missing";
  if (!isGone) return;
  Object.assign(held, unfaulted, { seen: undefined });
  held.listener?.noted("The config file was removed. What it said holds until the next start.");
}

/** The stored config after a change, validated as a whole. @throws ProxyError `invalid_request`. */
export function plannedChange(before: Stored, patch: Stored): { stored: Stored; config: Config } {
  const stored = patched(before, patch);
  return { stored, config: parseConfig(stored) };
}

/** The file after a change. */
function plan(file: ConfigReading, patch: Stored): Planned {
  const { stored, config } = plannedChange(file.stored, patch);
  const text = Bun.deepEquals(stored, file.stored) ? file.text : `${JSON.stringify(stored, null, 2)}\n`;
  return { text, stored, config, isNew: text !== file.text };
}

interface Planned extends ConfigReading {
  isNew: boolean;
}

/** Writes a planned change and lets it take effect. */
function change(held: Held, patch: Stored, { isNew, ...next }: Planned): void {
  const setsKeys = Object.hasOwn(patch, waitingMember);
  if (setsKeys) writePrivate(markPath(held.path), markOf(next.config));
  if (isNew) writePrivate(held.path, next.text);
  // Read again at the next look: it may have been edited by hand in this very moment.
  held.seen = undefined;
  hold(held, next, { setsKeys });
}

/** A file with an error is not overwritten: its owner may be editing it. */
function readForChange(held: Held): ConfigReading {
  const { path } = held;
  try {
    return readConfig(path, held);
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    const fault = withoutFolder(path, thrown.message);
    throw conflict(`${fault} The file was edited by hand and has an error: fix it first. Nothing was changed.`, thrown);
  }
}

/** Without the folder: a caller over the network need not know it. */
const withoutFolder = (path: string, sentence: string) => sentence.replaceAll(path, basename(path));

/** The error for a change that was made for another revision. */
export const changedMeanwhile = () =>
  conflict("The config has changed since you read it, so nothing was changed. Read it again and repeat your change.");

const conflict = (sentence: string, cause?: unknown) =>
  new ProxyError("conflict", sentence, { code: "config_conflict", cause });

/** What the system or SQLite says of the folder, as one sentence for the owner; anything else as it is. */
function asWriteFailure(thrown: unknown): unknown {
  if (thrown instanceof ProxyError || !(thrown instanceof Error && "code" in thrown)) return thrown;
  return new ProxyError(
    "internal",
    "The config could not be written, so nothing was changed; is the disk full or read-only?",
    { code: "config_write_failed", cause: thrown },
  );
}
