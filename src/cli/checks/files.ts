/** The data folder and its content: owner, permissions, and whether config and history are valid. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { checkIntegrity, isSound } from "../../books/history/integrity-check";
import { inHome } from "../../config/home-names";
import { lookAtConfig } from "../../config/read-config";
import { asProxyError, codeOf } from "../../lib/errors";
import { plural, size } from "../../lib/format";
import { membersContent } from "../../parts/local-stores";
import { ledgerContent } from "../../people/budgets/ledger";
import { about, type CheckContext, type Finding } from "./check";

export function checkFolder({ environment: { home } }: CheckContext): Finding[] {
  const folder = about("data folder");
  if (!existsSync(home)) {
    const above = nearestAbove(home);
    if (mayWrite(above))
      return [folder.ok(`${home} does not exist yet; it is created when needed.`), ...checkDisk(above)];
    return [
      folder.fail(
        `${home} cannot be created: ${above} is not writable.`,
        "Set DRAGOMAN_HOME to a folder that you own.",
      ),
    ];
  }
  return [checkRights(home), ...checkDisk(home)];
}

function checkRights(home: string): Finding {
  const folder = about("data folder");
  const stats = statSync(home);
  if (!stats.isDirectory()) return folder.fail(`${home} is not a folder.`, "Set DRAGOMAN_HOME to a folder.");
  const uid = process.getuid?.();
  if (uid !== undefined && stats.uid !== uid)
    return folder.fail(
      `${home} belongs to another user (uid ${stats.uid}, this is uid ${uid}).`,
      "Set DRAGOMAN_HOME to a folder that you own.",
    );
  if (!mayWrite(home)) return folder.fail(`${home} is not writable.`, `Run: chmod 700 ${quoted(home)}`);
  // On Windows the parent folders decide who can read it.
  if (uid === undefined) return folder.ok(`${home} is writable.`);
  if (stats.mode & 0o022)
    return folder.fail(
      `Other users can write to ${home}, so dragoman refuses to start.`,
      `Run: chmod 700 ${quoted(home)}`,
    );
  const open = [home, ...below(home)].filter((path) => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077);
  const [first] = open;
  if (first === undefined) return folder.ok(`${home}: only you can read it.`);
  const named = first === home ? "the folder itself" : relative(home, first);
  return folder.warn(
    `Other users can read ${plural(open.length, "item")} in ${home}: ${named}${open.length > 1 ? " and more" : ""}.`,
    `Run: chmod -R go= ${quoted(home)}`,
  );
}

const mebibyte = 1024 * 1024;

function checkDisk(path: string): Finding[] {
  const { bavail, bsize } = statfsSync(path);
  return [judgeDisk(bavail * bsize)];
}

/** @param free Bytes. */
export function judgeDisk(free: number): Finding {
  const disk = about("disk");
  const left = `${size(free)} are free on the disk of the data folder`;
  if (free < 10 * mebibyte)
    return disk.fail(`${left}: neither settings nor the history can be saved.`, "Free some space on that disk.");
  if (free < 200 * mebibyte)
    return disk.warn(`${left}: the history may soon no longer be saved.`, "Free some space on that disk.");
  return disk.ok(`${left}.`);
}

export function checkConfig({ environment: { configFile, databaseUrl } }: CheckContext): Finding[] {
  if (databaseUrl !== undefined) return [];
  const config = about("config");
  try {
    const read = lookAtConfig(configFile);
    if (!read) return [config.ok("There is no config.json; every key has its default.")];
    const keys = Object.keys(read.stored);
    return [
      config.ok(`config.json reads: ${keys.length === 0 ? "every key has its default" : `${keys.join(", ")} set`}.`),
    ];
  } catch (thrown) {
    return [config.fail(asProxyError(thrown).message, "Fix the file; until then dragoman does not start.")];
  }
}

export function checkHistory({ environment: { historyFile, databaseUrl } }: CheckContext): Finding[] {
  if (databaseUrl !== undefined) return [];
  const history = about("history");
  try {
    const sound = checkIntegrity(historyFile);
    if (!sound) return [history.ok("There is none yet; it is created with the first request.")];
    return [history.ok(`${historyFile} is intact: ${plural(sound.rows, "request")}, ${size(sound.bytes)}.`)];
  } catch (thrown) {
    return [history.fail(asProxyError(thrown).message)];
  }
}

const stores = { budgets: ledgerContent, members: membersContent } as const;

/** What budgets have used and who is a member: those that are there. */
export function checkStores({ environment: { home, databaseUrl } }: CheckContext): Finding[] {
  if (databaseUrl !== undefined) return [];
  return (["budgets", "members"] as const).flatMap((which) => {
    const path = inHome(home, which);
    const { name, consequence } = stores[which];
    try {
      const sound = isSound(path);
      if (sound === undefined) return [];
      if (sound) return [about(which).ok(`${path} is intact.`)];
      return [about(which).fail(`The ${name} ${path} is damaged. The next start moves it aside, and ${consequence}.`)];
    } catch (thrown) {
      return [about(which).fail(`The ${name} ${path} cannot be read (${codeOf(thrown)}).`)];
    }
  });
}

const nearestAbove = (path: string): string => (existsSync(path) ? path : nearestAbove(dirname(path)));
const quoted = (path: string) => `"${path}"`;

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function below(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  } catch {
    return []; // a file was removed meanwhile
  }
}
