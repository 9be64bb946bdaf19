/** Restores a client's file as it was before dragoman wrote to it. */
import { mkdirSync, rmdirSync } from "node:fs";
import { dirname } from "node:path";
import { removeFile, replaceFile } from "../../config/files";
import { codeOf, ProxyError } from "../../errors";
import { SettingsFault } from "../edit";
import { readSettings } from "../formats";
import { type Backup, backupFor, findBackup, inBackups, writeBackup } from "./backup";
import { type Found, isSame, readFile, settingsText } from "./read";
import type { Reverted } from "./revert";
import { type SettingsFile, withoutOurEdits } from "./write";

export interface Undone {
  state: "restored" | "removed" | "taken out" | "as it was";
  file: string;
  /** The path of the copy of a changed file. */
  kept?: string;
}

/**
 * Restores the file byte for byte. Later changes of other settings are kept.
 * @param force Also undoes settings of dragoman that were changed since, and restores a file whose changes cannot be
 * separated; a copy of the changed file is kept.
 * @returns Undefined if dragoman has not written to the file.
 * @throws ProxyError `conflict` if `force` is needed, or if it is not clear which file is meant
 */
export async function undoSettings(place: SettingsFile, force: boolean): Promise<Undone | undefined> {
  return inBackups(place, (folder): Undone | undefined => {
    const found = findBackup(folder, place.id, place.path);
    if (!found) return undefined;
    const { path } = found;
    const now = readFile(found.backup.file, found.backup.target);
    const backup = backupFor(found.backup, now?.bytes);
    const { file, target, content } = backup;
    const done = (state: Undone["state"], kept?: string): Undone => {
      writeBackup(path, undefined);
      return { state, file, kept };
    };
    if (isSame(now?.bytes, content ?? undefined)) return done("as it was");
    if (!now && !force) throw goneSince(place.undoneBy, backup);
    const putBack = (kept?: string): Undone => {
      attempt(file, () => restore(backup));
      return done(content === null ? "removed" : "restored", kept);
    };
    if (!now || (!backup.mixed && isOurs(place, backup, now))) return putBack();
    const apart = backup.mixed ? undefined : withoutOurEdits(place, backup, now.bytes, false);
    const theirs = apart && "text" in apart ? apart.text : undefined;
    if (theirs === undefined && !force) throw changedSince(place.undoneBy, backup, apart);
    const kept = theirs === undefined ? path.replace(/\.json$/, `.changed-${Date.now()}`) : undefined;
    if (kept) replaceFile(kept, now.bytes, 0o600);
    const forced = theirs === undefined ? withoutOurEdits(place, backup, now.bytes, true) : undefined;
    const left = theirs ?? (forced && "text" in forced ? forced.text : undefined);
    const isBlank = content === null && left?.trim() === "";
    if (left === undefined || isBlank || (content && isSame(Buffer.from(left), content))) return putBack(kept);
    attempt(file, () => replaceFile(target, left, now.mode));
    return done("taken out", kept);
  });
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

function restore({ content, mode, target, folders }: Backup): void {
  if (content !== null) {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    replaceFile(target, content, mode);
    return;
  }
  removeFile(target);
  for (const folder of folders.toReversed())
    try {
      rmdirSync(folder);
    } catch {
      return; // the folder has other content by now
    }
}

function attempt(file: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    throw new ProxyError("internal", `${file} could not be restored (${codeOf(cause) || cause}). It was not changed.`, {
      cause,
    });
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
    backup.content === null
      ? `${backup.file} no longer exists, so nothing was done. ${forceOf(undoneBy)} deletes its backup.`
      : `${backup.file} no longer exists, so nothing was done. To get it back, run ${forceOf(undoneBy)}: it ${whatWas(backup)}.`,
  );
}

/** @param apart Undefined if the changes cannot be separated. */
function changedSince(undoneBy: string, backup: Backup, apart: Reverted | undefined): ProxyError {
  const changed = apart && "changed" in apart ? apart.changed.join(", ") : undefined;
  return new ProxyError(
    "conflict",
    changed === undefined
      ? `${backup.file} was changed after dragoman wrote to it, and dragoman's settings cannot be separated from the other changes, so the file was not changed. Either remove the dragoman entries yourself, or run ${forceOf(undoneBy)}: it removes them if it can, otherwise ${whatWas(backup)}, and keeps a copy of the present file.`
      : `${backup.file} was not changed: settings that dragoman wrote there were changed since (${changed}). Run ${forceOf(undoneBy)} to undo those too: everything else in the file stays, and a copy of the file is kept.`,
  );
}
