/** Files and folders that only their owner may read; files are replaced atomically. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, ProxyError } from "../lib/errors";
import { homeFolder } from "./environment";
import { isOwnName } from "./home-names";

/** Undefined on Windows, where a folder in the user's profile inherits private permissions. */
const ourUid = process.getuid?.();

/** The code of an error of the data folder, for a program that starts dragoman. */
const folderUnusable = "data_folder_unusable";

/**
 * Creates the folder, or sets its mode to 0700 with one warning. Throws `permission` if it belongs to another user or
 * others may write into it (also behind a link), or if it holds what is not dragoman's and others can read it: that would
 * be closed to them. Throws `internal` if it cannot be created.
 */
export function ensurePrivateFolder(path: string, warn: (sentence: string) => void): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ProxyError("internal", `The folder ${path} cannot be created (${codeOf(error) || error}).`, {
      code: folderUnusable,
      cause: error,
    });
  }
  if (ourUid === undefined) return;
  const { uid, mode } = statSync(path);
  if (uid !== ourUid) throw belongsToAnother(path, uid);
  if (mode & 0o022)
    throw new ProxyError(
      "permission",
      `Others may write into the folder ${path}; run: chmod 700 ${JSON.stringify(path)}`,
      { code: folderUnusable },
    );
  if (mode & 0o077) {
    const other = foreignIn(path);
    if (other !== undefined) throw notItsOwn(path, other);
    chmodSync(path, 0o700);
    warn(`Others could read the folder ${path}; now only you can.`);
  }
}

/** What an empty volume has. */
const ofFileSystems = new Set(["lost+found", ".DS_Store"]);

/** The name of something in the folder that is not dragoman's; the folder's own path if it is the root or the home folder. */
function foreignIn(path: string): string | undefined {
  const place = realpathSync(path);
  if (place === resolve("/") || place === homeFolder()) return place;
  return readdirSync(place).find((name) => !isOwnName(name) && !ofFileSystems.has(name));
}

/** @throws ProxyError `permission` if the data folder holds anything that is not dragoman's */
export function requireOwnFolder(path: string): void {
  const other = foreignIn(path);
  if (other !== undefined)
    throw new ProxyError(
      "permission",
      `The folder ${path} is not dragoman's alone (${other}), so nothing in it was removed. Delete what you do not need yourself.`,
    );
}

/** Deletes the data folder and all in it. @throws as requireOwnFolder */
export function removeDataFolder(path: string): void {
  requireOwnFolder(path);
  rmSync(path, { recursive: true });
}

const notItsOwn = (path: string, other: string) =>
  new ProxyError(
    "permission",
    `The folder ${path} is not dragoman's alone (${other}), and it would be closed to everybody else: choose a folder of its own for dragoman's data, with DRAGOMAN_HOME. Nothing was changed.`,
    { code: folderUnusable },
  );

/**
 * Replaces the file's text, 0600; a link stays and its target is replaced. After a crash or an error the file is
 * the old one or the new one, whole. Throws the system's own error.
 * @param isWanted Asked when only the name is left to change. @returns Whether it was wanted.
 */
export const writePrivate = (path: string, text: string, isWanted?: () => boolean): boolean =>
  replaceFile(path, text, 0o600, isWanted);

/** As `writePrivate`, for a file that is the person's own and keeps its mode. */
export function replaceFile(path: string, content: string | Uint8Array, mode: number, isWanted = () => true): boolean {
  const target = followLink(path);
  const temporary = `${target}.tmp-${process.pid}-${crypto.getRandomValues(Buffer.alloc(6)).toString("hex")}`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeFileSync(file, content);
      // Sets the exact mode: the umask has reduced the one given to openSync.
      if (mode !== 0o600) fchmodSync(file, mode);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (isWanted()) rename(temporary, target);
    else {
      rmSync(temporary);
      return false;
    }
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(target));
  return true;
}

/** Removes the file, which then stays away although the machine loses its power. @throws The system's own error, but not if there is no file. */
export function removeFile(path: string): void {
  rmSync(path, { force: true });
  syncFolder(dirname(path));
}

/**
 * The target of a link, even if it does not exist yet. Links of parent folders are followed too, so that a file has the same
 * path before and after it is created. @throws The system's own error.
 */
export function followLink(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  let next: string;
  try {
    next = readlinkSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(followLink(parent), basename(path));
  }
  return followLink(resolve(followLink(dirname(path)), next));
}

/** On Windows a virus scanner or an editor may keep the old file open for a moment. */
function rename(from: string, to: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      const held = process.platform === "win32" && ["EPERM", "EACCES", "EBUSY"].includes(codeOf(error));
      if (!held || attempt === 10) throw error;
      Bun.sleepSync(20);
    }
  }
}

/**
 * Makes the change of a name in the folder outlast a loss of power. A failure is not the change's, which is made already, and some
 * network file systems cannot sync a folder at all; SQLite ignores it too.
 */
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  try {
    const folder = openSync(path, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch {
    // the file is whole, whichever one a crash leaves
  }
}

/**
 * The file's text without a byte order mark; undefined if there is no such file. Anything but a regular UTF-8 file of at
 * most `maxBytes` is refused at once. With `tighten`, a file that others could read gets the mode 0600.
 */
export function readPrivate(path: string, maxBytes: number, { tighten = true } = {}): string | undefined {
  const file = openToRead(path);
  if (file === undefined) return undefined;
  try {
    const stats = fstatSync(file);
    const { uid, mode, size } = stats;
    if (!stats.isFile()) throw new ProxyError("invalid_request", `${path} is not a file.`);
    // A file of root is trusted; one of another user could be malicious.
    if (ourUid !== undefined && uid !== ourUid && uid !== 0) throw belongsToAnother(path, uid);
    if (size > maxBytes) throw new ProxyError("invalid_request", `${path} is larger than ${maxBytes} bytes.`);
    if (tighten && uid === ourUid && mode & 0o077) fchmodSync(file, 0o600);
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    if (error instanceof ProxyError) throw error;
    throw new ProxyError("invalid_request", `${path} is not readable text (${codeOf(error) || error}).`, {
      cause: error,
    });
  } finally {
    closeSync(file);
  }
}

function openToRead(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new ProxyError("invalid_request", `${path} cannot be read (${codeOf(error) || error}).`, { cause: error });
  }
}

/**
 * Removes temporary files of a `writePrivate` that was killed, but not those of a running process.
 * @param of Only temporary files of this file name.
 */
export function removeLeftovers(folder: string, of?: string): void {
  for (const name of readdirSync(folder)) {
    if (of !== undefined && !name.startsWith(`${of}.tmp-`)) continue;
    const [, pid] = /\.tmp-(\d+)-[0-9a-z]+$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const path = join(folder, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (age > 60_000 || !isAlive(Number(pid))) rmSync(path, { force: true });
  }
}

/** Whether a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

function belongsToAnother(path: string, uid: number): ProxyError {
  return new ProxyError("permission", `${path} belongs to another user (uid ${uid}; dragoman runs as uid ${ourUid}).`, {
    code: folderUnusable,
  });
}
