/**
 * The key that seals members' secrets in the data folder, in a file that only the server's user can read. It helps where somebody
 * gets the other files without it: a backup that leaves it out, a copy that was given away. It does not help against who can read
 * files as the server's user, or as the machine's administrator.
 */
import { linkSync, rmSync } from "node:fs";
import { codeOf } from "../lib/errors";
import { checkSealKey } from "./environment";
import { readPrivate, writePrivate } from "./files";

/** @returns The key of 32 bytes, which is made with its file at the first call. @throws ProxyError if the file cannot be used. */
export function keyInFile(path: string): Buffer {
  const stored = readPrivate(path, maxBytes);
  if (stored !== undefined) return checkSealKey(path, stored.trim());
  const made = `${path}.tmp-${process.pid}-0`;
  writePrivate(made, `${crypto.getRandomValues(Buffer.alloc(32)).toString("base64")}\n`);
  try {
    // Of two processes that make it at once, the first one's counts.
    linkSync(made, path);
  } catch (thrown) {
    if (codeOf(thrown) !== "EEXIST") throw thrown;
  } finally {
    rmSync(made);
  }
  return checkSealKey(path, readPrivate(path, maxBytes)!.trim());
}

const maxBytes = 1_024;
