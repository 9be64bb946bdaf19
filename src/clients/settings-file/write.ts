/** Writes dragoman's settings into a client's file: everything else stays, and the change can be undone. */
import { mkdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { replaceFile } from "../../config/files";
import { codeOf, ProxyError } from "../../errors";
import type { Client } from "../client";
import { type Edit, SettingsFault } from "../edit";
import { editSettings } from "../formats";
import type { ClientId } from "../index";
import { type Backup, backupPath, inBackups, readBackup, targetOf, writeBackup } from "./backup";
import { type Found, isSame, isThere, readFile, settingsText } from "./read";
import { type Reverted, revertEdits } from "./revert";

/** The client's file, and where what it was before is kept. */
export interface SettingsFile {
  id: ClientId;
  settings: NonNullable<Client["file"]>;
  file: string;
  /** Our own data folder. */
  home: string;
  /** Told what the person should know beside the result. */
  warn(sentence: string): void;
}

export interface Written {
  file: string;
  before: string;
  /** Equal to `before` when it said all of it already. */
  after: string;
  /** What it was before is kept. */
  kept: boolean;
  /** Others on this machine can read it. */
  open: boolean;
}

/** @throws ProxyError with a sentence when the file cannot be read, edited or written; it is then as it was. */
export async function writeSettings(place: SettingsFile, edits: readonly Edit[]): Promise<Written> {
  return inBackups(place, (folder) => {
    const { file } = place;
    const target = targetOf(file);
    const path = backupPath(folder, place.id, target);
    const now = readFile(file, target);
    const before = settingsText(file, now?.bytes);
    const earlier = readBackup(path);
    const start = whereToStart(place, earlier, now);
    const after = editedText(place, settingsText(file, start.base), edits);
    const open = process.platform !== "win32" && ((now?.mode ?? 0) & 0o077) !== 0;
    if (now && before === after) return { file, before, after, kept: earlier !== undefined, open };
    const fresh = { mode: now?.mode ?? 0o600, folders: missing(target), at: new Date().toISOString() };
    const { mode, folders, at } = start.earlier ?? fresh;
    const { original: content, mixed } = start;
    const paths = [...(start.earlier?.paths ?? []), ...edits.map(({ path }) => [...path])];
    const backup = { file, target, content, mode, folders, at, mixed, paths, written: Buffer.from(after) };
    // Whoever is stopped between the two has lost nothing.
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

interface Start {
  /** What the settings are put into. */
  base: Uint8Array | undefined;
  /** What the way back leads to. */
  original: Uint8Array | null;
  mixed: boolean;
  /** The backup that goes on to hold. */
  earlier?: Backup;
}

/** What we wrote earlier is written anew from what was there without it, so that nothing of it stays behind. */
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
 * @param force Also what is ours and was changed since.
 * @returns Undefined when theirs cannot be told from ours.
 */
export function withoutOurEdits(
  { settings }: SettingsFile,
  { file, content, written, paths }: Backup,
  now: Uint8Array,
  force: boolean,
): Reverted | undefined {
  const { format, bookkeeping } = settings;
  const versions = {
    before: settingsText(file, content ?? undefined),
    written: settingsText(file, written),
    now: settingsText(file, now),
  };
  return revertEdits({ format, paths, bookkeeping }, versions, force);
}

function editedText({ file, settings }: SettingsFile, text: string, edits: readonly Edit[]): string {
  try {
    return editSettings(settings.format, text, edits);
  } catch (thrown) {
    if (thrown instanceof SettingsFault) {
      const where = thrown.line === undefined ? "" : ` at line ${thrown.line}`;
      throw new ProxyError(
        "invalid_request",
        `${file} is not valid ${settings.format.toUpperCase()}${where}: ${thrown.message}. It was not changed. Fix the file, then try again.`,
      );
    }
    if (!(thrown instanceof ProxyError)) throw thrown;
    throw new ProxyError(thrown.kind, `${file} was not changed: ${thrown.message}.`, { cause: thrown });
  }
}

/** Folders above the file that are not there yet, the outermost first. */
function missing(target: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(target); !isThere(folder) && basename(folder) !== ""; folder = dirname(folder))
    folders.unshift(folder);
  return folders;
}
