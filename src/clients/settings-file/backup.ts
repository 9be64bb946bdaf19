/** Keeps a copy of a client's file, as it was before dragoman wrote to it, in the data folder until it is restored. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import {
  ensurePrivateFolder,
  followLink,
  readPrivate,
  removeFile,
  removeLeftovers,
  writePrivate,
} from "../../config/files";
import { inHome } from "../../config/home-names";
import { withLock } from "../../config/lock";
import { codeOf, ProxyError } from "../../lib/errors";
import { isSame } from "./read";

/** Enough for three settings files of the maximum size, in base64. */
const maxBytes = 18 * 1024 * 1024;

const bytes = z.base64().transform((text): Uint8Array => Buffer.from(text, "base64"));

const schema = z.object({
  /** The client's path; `target` is the file that a link points to. */
  file: z.string(),
  target: z.string(),
  /** The original content, and its mode; null if there was no file. */
  content: bytes.nullable(),
  mode: z.int(),
  /** The content that dragoman wrote last. */
  written: bytes,
  /** What stood in the file when that was written: the file still has it if the process was killed in between. */
  overwritten: bytes.optional(),
  /** The paths of dragoman's settings in the file. */
  paths: z.array(z.array(z.union([z.string(), z.object({ name: z.string() })]))).default([]),
  /** The file was changed between two writes by dragoman, and the changes cannot be separated. */
  mixed: z.boolean(),
  /** Folders that were created for the file, the outermost first. */
  folders: z.array(z.string()),
  /** The time of the first write, in ISO 8601. */
  at: z.string(),
});
export type Backup = z.infer<typeof schema>;

/** The path of a new backup. */
const backupPath = (folder: string, id: string, target: string) =>
  join(folder, `${id}-${createHash("sha256").update(target).digest("hex").slice(0, 12)}.json`);

/** Undefined if there is none. @throws ProxyError if it is damaged */
function readBackup(path: string): Backup | undefined {
  const text = readPrivate(path, maxBytes);
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ProxyError("internal", `The backup ${path} is damaged. Nothing was changed.`, { cause });
  }
}

/** @param backup Undefined deletes it. */
export function writeBackup(path: string, backup: Backup | undefined): void {
  if (!backup) {
    removeFile(path);
    return;
  }
  const base64 = (content: Uint8Array) => Buffer.from(content).toString("base64");
  const content = backup.content && base64(backup.content);
  const overwritten = backup.overwritten && base64(backup.overwritten);
  writePrivate(path, JSON.stringify({ ...backup, content, written: base64(backup.written), overwritten }));
}

/** The backup for a file that has this content: a process that was killed between its two writes has written nothing there. */
export const backupFor = (backup: Backup, now: Uint8Array | undefined): Backup =>
  backup.overwritten && isSame(now, backup.overwritten) ? { ...backup, written: backup.overwritten } : backup;

/** The backups of a client's files, by their paths. */
function backupsOf(folder: string, id: string): { path: string; backup: Backup }[] {
  const names = readdirSync(folder).filter((name) => name.startsWith(`${id}-`) && name.endsWith(".json"));
  return names.flatMap((name) => {
    const path = join(folder, name);
    const backup = readBackup(path);
    return backup ? [{ path, backup }] : [];
  });
}

/**
 * The backup of this file, and where it is kept or will be. A file may have been moved since, with a link in its place, as
 * dotfile managers do.
 */
export function backupOf(folder: string, id: string, file: string): { path: string; backup?: Backup } {
  const target = targetOf(file);
  const all = backupsOf(folder, id);
  const own = all.find(({ backup }) => backup.target === target) ?? all.find(({ backup }) => backup.file === file);
  return own ?? { path: backupPath(folder, id, target) };
}

/**
 * The backup of this file, or else the client's only one: the variable that located the file may be unset by now.
 * @throws ProxyError `conflict` if the client has several
 */
export function findBackup(folder: string, id: string, file: string): { path: string; backup: Backup } | undefined {
  const { path, backup } = backupOf(folder, id, file);
  if (backup) return { path, backup };
  const all = backupsOf(folder, id);
  if (all.length < 2) return all[0];
  const files = all.map(({ backup }) => backup.file).sort();
  throw new ProxyError(
    "conflict",
    `dragoman wrote to several files of this client: ${files.join(", ")}. Set the environment variable that locates its settings to the one you mean, then try again.`,
  );
}

/** The clients' files that dragoman has written to, by their names. @param home The data folder; it is not changed. */
export function backupsIn(home: string): { id: string; file: string }[] {
  const folder = inHome(home, "connect");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .flatMap((name) => {
      const id = /^(.+)-[0-9a-f]{12}\.json$/.exec(name)?.[1];
      const file = id && readBackup(join(folder, name))?.file;
      return file ? [{ id, file }] : [];
    })
    .sort((one, other) => (one.file < other.file ? -1 : 1));
}

/** The target of the client's file if it is a link. @throws ProxyError if it cannot be resolved */
export function targetOf(file: string): string {
  try {
    return followLink(file);
  } catch (cause) {
    throw new ProxyError(
      "permission",
      `${file} cannot be reached (${codeOf(cause) || "unknown"}): check the folders and links that lead to it.`,
      { cause },
    );
  }
}

/**
 * Runs `work` on the folder of the backups, one process at a time.
 * @param home The data folder.
 * @param warn Called if the permissions of `home` were made stricter.
 */
export async function inBackups<T>(
  { home, warn }: { home: string; warn(sentence: string): void },
  work: (folder: string) => T,
): Promise<T> {
  ensurePrivateFolder(home, warn);
  const folder = inHome(home, "connect");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return withLock(join(folder, "lock"), () => {
    removeLeftovers(folder);
    return work(folder);
  });
}
