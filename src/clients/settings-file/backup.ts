/** Keeps a copy of a client's file, as it was before dragoman wrote to it, in the data folder until it is restored. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ensurePrivateFolder, followLink, readPrivate, removeLeftovers, writePrivate } from "../../config/files";
import { withLock } from "../../config/lock";
import { codeOf, ProxyError } from "../../errors";
import type { ClientId } from "../index";

/** Two settings files of the largest size, in base64. */
const maxBytes = 12 * 1024 * 1024;

const bytes = z.base64().transform((text): Uint8Array => Buffer.from(text, "base64"));

const schema = z.object({
  /** As the client names it; `target` is what a link leads to. */
  file: z.string(),
  target: z.string(),
  /** What it was, and its mode; null when there was no file. */
  content: bytes.nullable(),
  mode: z.int(),
  /** What we wrote last. */
  written: bytes,
  /** Where in it we have put something. */
  paths: z.array(z.array(z.union([z.string(), z.object({ name: z.string() })]))).default([]),
  /** Somebody else changed it between two of our writes, in a way that cannot be told apart from ours. */
  mixed: z.boolean(),
  /** Folders that were made for it, the outermost first. */
  folders: z.array(z.string()),
  /** When we first wrote, in ISO 8601. */
  at: z.string(),
});
export type Backup = z.infer<typeof schema>;

/** Where the backup of this file lies, or will. */
export const backupPath = (folder: string, id: ClientId, target: string) =>
  join(folder, `${id}-${createHash("sha256").update(target).digest("hex").slice(0, 12)}.json`);

/** Undefined when there is none. @throws ProxyError when it is damaged. */
export function readBackup(path: string): Backup | undefined {
  const text = readPrivate(path, maxBytes);
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ProxyError("internal", `The backup ${path} is damaged. Nothing was changed.`, { cause });
  }
}

/** @param backup None takes it away. */
export function writeBackup(path: string, backup: Backup | undefined): void {
  if (!backup) {
    rmSync(path, { force: true });
    return;
  }
  const base64 = (content: Uint8Array) => Buffer.from(content).toString("base64");
  const content = backup.content && base64(backup.content);
  writePrivate(path, JSON.stringify({ ...backup, content, written: base64(backup.written) }));
}

/**
 * Of this file, or else the only one of this client: the variable that moved the file may not be set any more.
 * @throws ProxyError `conflict` when it is not clear which one is meant.
 */
export function findBackup(folder: string, id: ClientId, file: string): { path: string; backup: Backup } | undefined {
  const names = readdirSync(folder).filter((name) => name.startsWith(`${id}-`) && name.endsWith(".json"));
  const all = names.flatMap((name) => {
    const path = join(folder, name);
    const backup = readBackup(path);
    return backup ? [{ path, backup }] : [];
  });
  const target = targetOf(file);
  const own = all.find(({ backup }) => backup.target === target);
  if (own || all.length < 2) return own ?? all[0];
  throw new ProxyError(
    "conflict",
    `dragoman wrote to several files of this client: ${all.map(({ backup }) => backup.file).join(", ")}. Set the environment variable that locates its settings to the one you mean, then try again.`,
  );
}

/** The file that a client's own leads to. @throws ProxyError when the system does not lead there. */
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
 * Runs `work` on the folder of the backups; only one dragoman at a time does.
 * @param home Our own data folder.
 * @param warn Called when the rights of `home` had to be tightened.
 */
export async function inBackups<T>(
  { home, warn }: { home: string; warn(sentence: string): void },
  work: (folder: string) => T,
): Promise<T> {
  ensurePrivateFolder(home, warn);
  const folder = join(home, "connect");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return withLock(join(folder, "lock"), () => {
    removeLeftovers(folder);
    return work(folder);
  });
}
