/** Writes dragoman's settings into a client's file: everything else stays, and the change can be undone. */
import { mkdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { replaceFile } from "../../config/files";
import { codeOf, ProxyError } from "../../errors";
import { type Edit, NotEditable, type Path, SettingsFault, settingAt } from "../edit";
import { editSettings, readSettings, withEdits } from "../formats";
import type { ClientFile } from "../index";
import { type Backup, backupFor, backupPath, inBackups, readBackup, targetOf, writeBackup } from "./backup";
import { type Found, isSame, isThere, readFile, settingsText } from "./read";
import { type Reverted, revertValues } from "./revert";

/** A client's file, and the data folder for its backup. */
export interface SettingsFile extends Omit<ClientFile, "edits"> {
  /** The command that restores it: `dragoman connect codex --undo`. */
  undoneBy: string;
  /** The data folder. */
  home: string;
  /** Called with warnings for the person. */
  warn(sentence: string): void;
}

export interface Written {
  file: string;
  before: string;
  /** Equal to `before` if nothing had to change. */
  after: string;
  /** There is a backup of the file. */
  kept: boolean;
  /** Others on this machine can read it. */
  open: boolean;
}

/**
 * @param change `edits`: all of dragoman's settings in the file. `only`: these, and the others as the file has them now.
 * @throws ProxyError if the file cannot be read, edited or written; it is unchanged then
 */
export async function writeSettings(
  place: SettingsFile,
  change: { edits: readonly Edit[] } | { only: readonly Edit[] },
): Promise<Written> {
  return inBackups(place, (folder) => {
    const { path: file } = place;
    const target = targetOf(file);
    const path = backupPath(folder, place.id, target);
    const now = readFile(file, target);
    const before = settingsText(file, now?.bytes);
    const earlier = readBackup(path);
    const start = whereToStart(place, earlier && backupFor(earlier, now?.bytes), now);
    const edits = "edits" in change ? change.edits : withPresent(place, before, earlier?.paths ?? [], change.only);
    const after = editedText(place, settingsText(file, start.base), edits);
    const open = process.platform !== "win32" && ((now?.mode ?? 0) & 0o077) !== 0;
    if (now && before === after) return { file, before, after, kept: earlier !== undefined, open };
    const fresh = { mode: now?.mode ?? 0o600, folders: missing(target), at: new Date().toISOString() };
    const { mode, folders, at } = start.earlier ?? fresh;
    const { original: content, mixed } = start;
    const paths = [...(start.earlier?.paths ?? []), ...edits.map(({ path }) => [...path])];
    const versions = { content, written: Buffer.from(after), overwritten: now?.bytes };
    const backup = { file, target, mode, folders, at, mixed, paths, ...versions };
    // The backup is written first: a process that is killed in between loses nothing.
    writeBackup(path, backup);
    try {
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      replaceFile(target, after, fresh.mode);
    } catch (cause) {
      writeBackup(path, earlier);
      throw new ProxyError(
        "internal",
        `${file} could not be written (${codeOf(cause) || cause}). It was not changed.`,
        {
          cause,
        },
      );
    }
    return { file, before, after, kept: true, open };
  });
}

/** dragoman's settings as the file has them, with some of them changed. */
function withPresent(place: SettingsFile, text: string, paths: readonly Path[], only: readonly Edit[]): Edit[] {
  const wanted = asSettings(place, () => withEdits(readSettings(place.format, text), only));
  const covers = (path: Path, inner: Path) => Bun.deepEquals(path, inner.slice(0, path.length));
  const others = only.filter(({ path }) => !paths.some((own) => covers(own, path)));
  return [...paths.map((path) => ({ path, value: settingAt(wanted, path) })), ...others];
}

interface Start {
  /** The content that the settings are added to. */
  base: Uint8Array | undefined;
  /** The content that `--undo` restores. */
  original: Uint8Array | null;
  mixed: boolean;
  /** The existing backup, if it stays valid. */
  earlier?: Backup;
}

/** Settings that dragoman wrote earlier are removed first, so that none of them stay behind. */
function whereToStart(place: SettingsFile, earlier: Backup | undefined, now: Found | undefined): Start {
  const bytes = now?.bytes;
  if (!earlier || isSame(bytes, earlier.content ?? undefined))
    return { base: bytes, original: bytes ?? null, mixed: false };
  const { content, mixed } = earlier;
  if (isSame(bytes, earlier.written))
    return { base: mixed ? bytes : (content ?? undefined), original: content, mixed, earlier };
  const theirs = mixed || !bytes ? undefined : withoutOurEdits(place, earlier, bytes, false);
  if (!theirs || "changed" in theirs) return { base: bytes, original: content, mixed: true, earlier };
  const { text } = theirs;
  if (text.trim() === "" && content === null) return { base: undefined, original: null, mixed, earlier };
  return { base: Buffer.from(text), original: Buffer.from(text), mixed: false, earlier };
}

/**
 * @param force Also removes settings of dragoman that were changed since.
 * @returns Undefined if the changes cannot be separated.
 */
export function withoutOurEdits(
  { format, bookkeeping, choices }: SettingsFile,
  { file, content, written, paths }: Backup,
  now: Uint8Array,
  force: boolean,
): Reverted | undefined {
  const versions = {
    before: settingsText(file, content ?? undefined),
    written: settingsText(file, written),
    now: settingsText(file, now),
  };
  return revertValues({ format, paths, bookkeeping, choices }, versions, force);
}

const editedText = (place: SettingsFile, text: string, edits: readonly Edit[]): string =>
  asSettings(place, () => editSettings(place.format, text, edits));

/** @throws ProxyError that names the file, if its text cannot be read or edited */
function asSettings<T>({ path: file, format, undoneBy }: SettingsFile, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof SettingsFault) {
      const where = thrown.line === undefined ? "" : ` at line ${thrown.line}`;
      throw new ProxyError(
        "invalid_request",
        `${file} is not valid ${format.toUpperCase()}${where}: ${thrown.message}. It was not changed. Fix the file, then try again.`,
      );
    }
    if (!(thrown instanceof ProxyError)) throw thrown;
    const prints = undoneBy.replace(/ --undo$/, "");
    const todo = thrown instanceof NotEditable ? ` Add yourself what \`${prints}\` prints.` : "";
    throw new ProxyError(thrown.kind, `${file} was not changed: ${thrown.message}.${todo}`, { cause: thrown });
  }
}

/** Whether `writeSettings` has thrown this because a person has to add the settings. */
export const isByHand = (thrown: unknown): boolean =>
  thrown instanceof ProxyError && thrown.cause instanceof NotEditable;

/** The missing parent folders, the outermost first. */
function missing(target: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(target); !isThere(folder) && basename(folder) !== ""; folder = dirname(folder))
    folders.unshift(folder);
  return folders;
}
