/** The config store: loads the file, applies changes, and follows edits by hand. */
import { createHmac, randomBytes } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { ProxyError } from "../errors";
import { openApplied } from "./applied";
import { readPrivate, writePrivate } from "./files";
import { findJsonError, positionOf, type TextPosition } from "./json-position";
import { withLock } from "./lock";
import { patched, type Stored } from "./patch";
import { type Config, parseConfig, spell } from "./schema";
import { configKeys, valueAt } from "./secrets";

export type { Stored } from "./patch";

/** Far more than the largest config anybody writes. */
const maxBytes = 4 * 1024 * 1024;

/** Milliseconds between two checks of the file. An error in it is reported at the second check. */
const checkEvery = 500;

/** Keys that take effect only at start if edited in the file, and the config members they are in; the API sets them at once. */
const startKeys = configKeys.filter(({ restart }) => restart).map(({ path }) => path);
const startMembers = [...new Set(startKeys.map(([member]) => member as keyof Config))];

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
   * Merges into what the file has now, checks the whole, writes and applies it; or changes nothing.
   * @throws ProxyError `invalid_request` when a key or value is wrong; `conflict` when the file does not read, or is not
   * of this revision; `internal` with the code `config_write_failed` when it cannot be written.
   */
  change(patch: Stored, options?: ChangeOptions): Promise<void>;
  /** Checks the file now. */
  reload(): void;
  /** Checks the file twice a second from now on. */
  follow(listener: Listener): void;
  close(): void;
}

export interface ChangeOptions {
  /** The one the change was made for. */
  revision?: string;
  /** Asked before anything is written; throws to refuse. */
  check?(next: Config): void;
}

export interface Listener {
  /**
   * Other values hold now: those of these members.
   * @param edited By hand, in the file; a member that counts from the next start may then be all that was changed.
   */
  changed(members: string[], edited: boolean): void;
  /** The file was edited and does not read; what held goes on. */
  refused(sentence: string): void;
}

/** Loads the config; a missing file means defaults. Throws `invalid_request` naming the file and the place at fault; the file stays as it is. */
export function openConfig(path: string): ConfigStore {
  const salt = randomBytes(16);
  const appliedPath = `${path}.applied`;
  const applied = openApplied(appliedPath, startMembers);
  /** The file and the calls as they were last read, or found wrong for the second time; `suspect`, for the first time. */
  let seen: string | undefined;
  let suspect: string | undefined;
  let text = readPrivate(path, maxBytes) ?? "{}";
  let stored = parseText(path, text);
  let current = parseStored(path, text, stored);
  // What calls have set until now is what the file has.
  applied.news(current);
  let fault: string | undefined;
  let waiting: string[] = [];
  let listener: Listener | undefined;
  let timer: Timer | undefined;

  /** @param kept Members that go on as they are, whatever the file says. */
  const hold = (next: Reading, kept: readonly (keyof Config)[], edited: boolean) => {
    const before = current;
    ({ text, stored } = next);
    current = { ...next.config, ...Object.fromEntries(kept.map((member) => [member, before[member]])) };
    waiting = startKeys
      .filter((path) => !Bun.deepEquals(valueAt(current, path), valueAt(next.config, path)))
      .map((path) => path.join("."));
    fault = undefined;
    suspect = undefined;
    const members = Object.keys(current) as (keyof Config)[];
    const changed = members.filter((member) => !Bun.deepEquals(current[member], before[member]));
    if (changed.length > 0 || (edited && waiting.length > 0)) listener?.changed(changed, edited);
  };

  /** What the file has now. One that is gone says nothing: an editor may be about to put a new one in its place. */
  const read = (): Reading => {
    const now = readPrivate(path, maxBytes) ?? text;
    const fresh = now === text ? stored : parseText(path, now);
    return { text: now, stored: fresh, config: parseStored(path, now, fresh) };
  };

  const look = () => {
    const file = fingerprint(path);
    const print = `${file} ${fingerprint(appliedPath)}`;
    if (file === undefined || print === seen) return;
    try {
      const now = read();
      seen = print;
      const news = applied.news(now.config);
      if (now.text !== text || fault !== undefined || news.length > 0)
        hold(now, without(startMembers, news), !applied.isOfCall(now.text));
    } catch (thrown) {
      if (!(thrown instanceof ProxyError)) throw thrown;
      fault = withoutFolder(path, thrown.message);
      // An editor may still be writing the file.
      if (print !== suspect) {
        suspect = print;
        return;
      }
      seen = print;
      listener?.refused(thrown.message);
    }
  };

  const plan = (patch: Stored, { revision, check }: ChangeOptions) => {
    const file = readForChange(path, read);
    if (revision !== undefined && revision !== revisionOf(file.text)) throw changedMeanwhile();
    const next = patched(file.stored, patch);
    const config = parseConfig(next);
    check?.(config);
    const text = Bun.deepEquals(next, file.stored) ? file.text : `${JSON.stringify(next, null, 2)}\n`;
    return { text, stored: next, config, isNew: text !== file.text };
  };

  const change = (patch: Stored, options: ChangeOptions) => {
    const { isNew, ...next } = plan(patch, options);
    const set = startMembers.filter((member) => Object.hasOwn(patch, member));
    const news = applied.news(next.config);
    if (isNew || set.length > 0) applied.note(set, next.config, next.text);
    if (isNew) writePrivate(path, next.text);
    // Read again at the next look: it may have been edited by hand in this very moment.
    seen = undefined;
    hold(next, without(startMembers, [...set, ...news]), false);
  };

  const revisionOf = (of: string) => createHmac("sha256", salt).update(of).digest("hex").slice(0, 16);

  return {
    get current() {
      return current;
    },
    get stored() {
      return stored;
    },
    get revision() {
      return revisionOf(text);
    },
    get fault() {
      return fault;
    },
    get waiting() {
      return waiting;
    },
    async change(patch, options = {}) {
      // What is wrong is said before anything is touched; what is right is judged again when nobody else can change it.
      plan(patch, options);
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
        await withLock(`${path}.lock`, () => change(patch, options));
      } catch (thrown) {
        throw asWriteFailure(thrown);
      }
    },
    reload: look,
    follow(given) {
      listener = given;
      timer ??= setInterval(look, checkEvery).unref();
    },
    close() {
      clearInterval(timer);
    },
  };
}

/** What the file says now, left as it is; undefined when there is none. @throws as {@link openConfig} */
export function lookAtConfig(path: string): { stored: Stored; config: Config } | undefined {
  const text = readPrivate(path, maxBytes, { tighten: false });
  if (text === undefined) return undefined;
  const stored = parseText(path, text);
  return { stored, config: parseStored(path, text, stored) };
}

const without = <T>(all: readonly T[], some: readonly T[]): T[] => all.filter((item) => !some.includes(item));

interface Reading {
  text: string;
  stored: Stored;
  config: Config;
}

/** Which file is there now, as far as its times tell; undefined when there is none to be seen. */
function fingerprint(path: string): string | undefined {
  try {
    const { ino, size, mtimeNs } = statSync(path, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch {
    return undefined;
  }
}

function parseText(path: string, text: string): Stored {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProxyError("invalid_request", `${path} is not valid JSON at ${inWords(findJsonError(text))}.`, { cause });
  }
}

function parseStored(path: string, text: string, stored: unknown): Config {
  try {
    return parseConfig(stored);
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    const { param } = thrown.details;
    const place = param === undefined ? "" : ` at ${inWords(positionOf(text, param, spell))}`;
    throw new ProxyError(thrown.kind, `${path} was not accepted${place}: ${thrown.message}`, {
      ...thrown.details,
      cause: thrown,
    });
  }
}

const inWords = ({ line, column }: TextPosition) => `line ${line}, column ${column}`;

/** A file with an error is not overwritten: its owner may be editing it. */
function readForChange(path: string, read: () => Reading): Reading {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    const fault = withoutFolder(path, thrown.message);
    throw conflict(`${fault} The file was edited by hand and has an error: fix it first. Nothing was changed.`, thrown);
  }
}

/** Without the folder: a caller over the network need not know it. */
const withoutFolder = (path: string, sentence: string) => sentence.replaceAll(path, basename(path));

const changedMeanwhile = () =>
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
