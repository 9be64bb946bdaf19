/** Writes dragoman's settings into a client's file: everything else stays, and the change can be undone. */
import { basename, dirname } from "node:path";
import { ProxyError } from "../../lib/errors";
import { type Edit, NotEditable, type Path, SettingsFault, settingAt } from "../edit";
import { editSettings, readSettings, withEdits } from "../formats";
import type { ClientFile } from "../index";
import { makeAll, type Step } from "./all-or-none";
import { type Backup, backupFor, backupOf, inBackups, targetOf } from "./backup";
import { type Found, isSame, isThere, readFile, settingsText } from "./read";
import { type OfChanged, type Reverted, revertValues } from "./revert";

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

/** What changes in a file. `edits`: all of dragoman's settings in it. `only`: these, and the others as the file has them now. */
export type Change = { edits: readonly Edit[] } | { only: readonly Edit[] };

/**
 * @param files Of one client.
 * @throws ProxyError if one of the files cannot be read, edited or written; all are unchanged then, unless it is a HalfDone
 */
export async function writeSettings(files: readonly (readonly [SettingsFile, Change])[]): Promise<Written[]> {
  const [place] = files[0] ?? [];
  if (!place) return [];
  return inBackups(place, (folder) => {
    const planned = files.map(([each, change]) => plan(folder, each, change));
    makeAll(
      planned.flatMap(({ step }) => step ?? []),
      "written",
      place.undoneBy,
    );
    return planned.map(({ written }) => written);
  });
}

function plan(folder: string, place: SettingsFile, change: Change): { written: Written; step?: Step } {
  const { path: file } = place;
  const target = targetOf(file);
  const now = readFile(file, target);
  const before = settingsText(file, now?.bytes);
  const { path, backup: earlier } = backupOf(folder, place.id, file);
  const start = whereToStart(place, earlier && backupFor(earlier, now?.bytes), now);
  const edits = "edits" in change ? change.edits : withPresent(place, before, earlier?.paths ?? [], change.only);
  const after = editedText(place, settingsText(file, start.base), edits);
  const open = process.platform !== "win32" && ((now?.mode ?? 0) & 0o077) !== 0;
  if (now && before === after) return { written: { file, before, after, kept: earlier !== undefined, open } };
  const made = missing(target);
  const fresh = { mode: now?.mode ?? 0o600, folders: made, at: new Date().toISOString() };
  const { mode, folders, at } = start.earlier ?? fresh;
  const { original: content, mixed } = start;
  const paths = [...(start.earlier?.paths ?? []), ...edits.map(({ path }) => [...path])];
  const versions = { content, written: Buffer.from(after), overwritten: now?.bytes };
  const backup = { file, target, mode, folders, at, mixed, paths, ...versions };
  return {
    written: { file, before, after, kept: true, open },
    step: {
      file,
      target,
      now,
      folders: made,
      change: { to: { bytes: versions.written, mode: fresh.mode } },
      backup: { path, before: earlier, after: backup },
    },
  };
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
  if (!earlier || !bytes || isSame(bytes, earlier.content ?? undefined))
    return { base: bytes, original: bytes ?? null, mixed: false };
  const { content, mixed } = earlier;
  if (isSame(bytes, earlier.written))
    return { base: mixed ? bytes : (content ?? undefined), original: content, mixed, earlier };
  const theirs = mixed ? undefined : withoutOurEdits(place, earlier, bytes, "keep");
  if (!theirs || "changed" in theirs) return { base: bytes, original: content, mixed: true, earlier };
  const { text } = theirs;
  if (text.trim() === "" && content === null) return { base: undefined, original: null, mixed, earlier };
  return { base: Buffer.from(text), original: Buffer.from(text), mixed: false, earlier };
}

/** @returns Undefined if the changes cannot be separated. */
export function withoutOurEdits(
  { format, bookkeeping, choices }: SettingsFile,
  { file, content, written, paths }: Backup,
  now: Uint8Array,
  ofChanged: OfChanged,
): Reverted | undefined {
  const versions = {
    before: settingsText(file, content ?? undefined),
    written: settingsText(file, written),
    now: settingsText(file, now),
  };
  return revertValues({ format, paths, bookkeeping, choices }, versions, ofChanged);
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
        `${file} is not valid ${format.replace("-list", "").toUpperCase()}${where}: ${thrown.message}. It was not changed. Fix the file, then try again.`,
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
