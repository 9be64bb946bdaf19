/** Restores a client's file as it was before dragoman wrote to it. */
import { ProxyError } from "../../lib/errors";
import { type Edit, SettingsFault } from "../edit";
import { readSettings, withEdits } from "../formats";
import { makeAll, type Step } from "./all-or-none";
import { type Backup, backupFor, findBackup, inBackups, targetOf } from "./backup";
import { type Found, isSame, readFile, settingsText } from "./read";
import type { Reverted } from "./revert";
import { type SettingsFile, withoutOurEdits } from "./write";

export interface Undone {
  state: "restored" | "removed" | "taken out" | "as it was" | "already without";
  file: string;
  /** The path of the copy of a changed file. */
  kept?: string;
}

/**
 * Restores the files byte for byte. Later changes of other settings are kept.
 * @param files Of one client, its settings file first.
 * @param force Also undoes settings of dragoman that were changed since, and restores a file whose changes cannot be
 * separated; a copy of the changed file is kept.
 * @returns One for each file that dragoman has written to.
 * @throws ProxyError `conflict` if `force` is needed, or if it is not clear which file is meant; all are unchanged then
 */
export async function undoSettings(files: readonly SettingsFile[], force: boolean): Promise<Undone[]> {
  const [place] = files;
  if (!place) return [];
  return inBackups(place, (folder) => {
    // The settings file goes last: its folder goes with it.
    const planned = files.toReversed().flatMap((each) => plan(folder, each, force) ?? []);
    makeAll(
      planned.map(({ step }) => step),
      "restored",
      place.undoneBy,
    );
    return planned.map(({ undone }) => undone);
  });
}

/** @throws ProxyError as `undoSettings` would without `force`; nothing is changed */
export async function requireUndoable(files: readonly SettingsFile[]): Promise<void> {
  const [place] = files;
  if (place) await inBackups(place, (folder) => void files.map((each) => plan(folder, each, false)));
}

function plan(folder: string, place: SettingsFile, force: boolean): { undone: Undone; step: Step } | undefined {
  const found = findBackup(folder, place.id, place.path);
  if (!found) return undefined;
  const { path } = found;
  const { file } = found.backup;
  const target = targetOf(file);
  const now = readFile(file, target);
  const backup = backupFor(found.backup, now?.bytes);
  const { content, mode, folders } = backup;
  const done = (state: Undone["state"], change?: Step["change"], copy?: string) => ({
    undone: { state, file, kept: copy },
    step: { file, target, now, change, folders, backup: { path, before: found.backup, after: undefined }, copy },
  });
  if (isSame(now?.bytes, content ?? undefined)) return done("as it was");
  if (!now && !force && hadOnlyOurs(place, backup)) return done("already without");
  if (!now && !force) throw goneSince(place.undoneBy, backup);
  const putBack = (copy?: string) =>
    content === null
      ? done("removed", { to: undefined }, copy)
      : done("restored", { to: { bytes: content, mode } }, copy);
  if (!now || (!backup.mixed && isOurs(place, backup, now))) return putBack();
  const apart = backup.mixed ? undefined : withoutOurEdits(place, backup, now.bytes, "refuse");
  const theirs = apart && "text" in apart ? apart.text : undefined;
  if (theirs === undefined && !force) throw changedSince(place.undoneBy, backup, apart);
  const copy = theirs === undefined ? path.replace(/\.json$/, `.changed-${Date.now()}`) : undefined;
  const forced = theirs === undefined ? withoutOurEdits(place, backup, now.bytes, "revert") : undefined;
  const left = theirs ?? (forced && "text" in forced ? forced.text : undefined);
  const isBlank = content === null && left?.trim() === "";
  if (theirs !== undefined && isSame(Buffer.from(theirs), now.bytes)) return done("already without");
  if (left === undefined || isBlank || (content && isSame(Buffer.from(left), content))) return putBack(copy);
  return done("taken out", { to: { bytes: Buffer.from(left), mode: now.mode } }, copy);
}

/** Whether the original file had no settings but those that dragoman writes: dragoman with another data folder made it then. */
function hadOnlyOurs({ format }: SettingsFile, { file, content, paths }: Backup): boolean {
  try {
    const original = readSettings(format, settingsText(file, content ?? undefined));
    const edits = paths.map((path): Edit => ({ path, value: undefined }));
    return Object.keys(withEdits(original, edits)).length === 0;
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return false;
    throw thrown;
  }
}

/** Whether the file is as dragoman wrote it, apart from the client's own state. */
function isOurs({ format, bookkeeping }: SettingsFile, { file, written }: Backup, { bytes }: Found): boolean {
  if (isSame(bytes, written)) return true;
  if (!bookkeeping) return false;
  const withoutState = (content: Uint8Array) => bookkeeping(readSettings(format, settingsText(file, content)));
  try {
    return Bun.deepEquals(withoutState(bytes), withoutState(written));
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return false;
    throw thrown;
  }
}

const forceOf = (undoneBy: string) => `\`${undoneBy} --force\``;

/** What `--undo` does, for messages. */
const whatWas = ({ at, content }: Backup) =>
  content === null
    ? "removes the file, because there was none before"
    : `restores the file of ${at.slice(0, 16).replace("T", " ")} UTC`;

function goneSince(undoneBy: string, backup: Backup): ProxyError {
  return new ProxyError(
    "conflict",
    `${backup.file} no longer exists, so nothing was done. To get it back, run ${forceOf(undoneBy)}: it ${whatWas(backup)}.`,
  );
}

/** @param apart Undefined if the changes cannot be separated. */
function changedSince(undoneBy: string, backup: Backup, apart: Reverted | undefined): ProxyError {
  const changed = apart && "changed" in apart ? apart.changed.join(", ") : undefined;
  return new ProxyError(
    "conflict",
    changed === undefined
      ? `${backup.file} was changed after dragoman wrote to it, and dragoman's settings cannot be separated from the other changes, so the file was not changed. Either remove the dragoman entries yourself, or run ${forceOf(undoneBy)}: it removes them if it can, otherwise ${whatWas(backup)}, and keeps a copy of the present file.`
      : `${backup.file} was not changed: settings that dragoman wrote there were changed since (${changed}). If dragoman with another data folder wrote there too, undo it with that DRAGOMAN_HOME first. Otherwise run ${forceOf(undoneBy)} to undo those too: everything else in the file stays, and a copy of the file is kept.`,
  );
}
