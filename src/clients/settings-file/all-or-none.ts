/** Replaces the files of a client: all of them, or none. */
import { mkdirSync, rmdirSync } from "node:fs";
import { dirname } from "node:path";
import { removeFile, replaceFile } from "../../config/files";
import { codeOf, ProxyError } from "../../lib/errors";
import { type Backup, writeBackup } from "./backup";
import type { Found } from "./read";

/** One file, what it becomes, and what becomes of its backup. */
export interface Step {
  /** The client's path; `target` is the file that a link points to. */
  file: string;
  target: string;
  /** Undefined if there is no file. */
  now: Found | undefined;
  /** Missing: the file stays. `to` undefined: there is none afterwards. */
  change?: { to: Found | undefined };
  /** Parent folders that are made for the file, or that go with it if nothing else is in them; the outermost first. */
  folders: readonly string[];
  backup: { path: string; before: Backup | undefined; after: Backup | undefined };
  /** A copy of the present file, in the data folder. */
  copy?: string;
}

/** Some of the files were replaced, and could not be put back. */
export class HalfDone extends ProxyError {}

/**
 * A process that is killed in between leaves each file whole, and a backup for each.
 * @param steps The backups of steps that leave one are written first; the others are removed last.
 * @throws ProxyError: nothing was changed; HalfDone
 */
export function makeAll(steps: readonly Step[], verb: "written" | "restored", undoneBy: string): void {
  const done: Step[] = [];
  const takeBack = (): Step[] => {
    const stuck = done.filter((step) => step.change && !isPutBack(step));
    for (const { backup, copy } of steps.filter((step) => !stuck.includes(step))) {
      writeBackup(backup.path, backup.before);
      if (copy !== undefined) removeFile(copy);
    }
    return stuck;
  };
  try {
    for (const { copy, now } of steps) if (copy !== undefined && now) replaceFile(copy, now.bytes, 0o600);
    for (const { backup } of steps) if (backup.after) writeBackup(backup.path, backup.after);
  } catch (cause) {
    takeBack();
    throw cause;
  }
  for (const step of steps)
    try {
      if (step.change) put(step, step.change.to);
      done.push(step);
    } catch (cause) {
      const stuck = takeBack();
      const failed = `${step.file} could not be ${verb} (${codeOf(cause) || cause})`;
      if (stuck.length === 0)
        throw new ProxyError(
          "internal",
          `${failed}. ${steps.length > 1 ? "Nothing was changed." : "It was not changed."}`,
          {
            cause,
          },
        );
      const left = stuck.map(({ file }) => file).join(", ");
      throw new HalfDone(
        "internal",
        `${failed}, and what was ${verb} before could not be put back: ${left}. When that is mended, run \`${undoneBy}\`.`,
        { cause },
      );
    }
  for (const { backup } of steps) if (!backup.after) writeBackup(backup.path, undefined);
}

function put({ target, folders }: Pick<Step, "target" | "folders">, found: Found | undefined): void {
  if (found) {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    replaceFile(target, found.bytes, found.mode);
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

function isPutBack(step: Step): boolean {
  try {
    put(step, step.now);
    return true;
  } catch {
    return false;
  }
}
