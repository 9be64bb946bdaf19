/** Reads a client's settings file, and refuses one that the person may not change. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { removeLeftovers } from "../../config/files";
import { codeOf, ProxyError } from "../../lib/errors";
import { maxBytes } from "../formats";

export interface Found {
  bytes: Uint8Array;
  mode: number;
}

/** Undefined if there is none. @throws ProxyError if the person may not change it */
export function readFile(file: string, target: string): Found | undefined {
  const refuse = (why: string): never => {
    throw new ProxyError("permission", `${file} ${why}. It was not changed.`);
  };
  // Temporary files of a killed process may contain a key.
  if (isThere(dirname(target))) removeLeftovers(dirname(target), basename(target));
  const found = statSync(target, { throwIfNoEntry: false });
  if (!found) return undefined;
  if (!found.isFile()) return refuse("is not a file");
  if (found.size > maxBytes) return refuse("is too large for a settings file");
  if (process.getuid && found.uid !== process.getuid()) return refuse("belongs to another user");
  if (process.platform !== "win32" && (found.mode & 0o200) === 0)
    return refuse(`is read-only: make it writable (chmod u+w ${JSON.stringify(target)}), or add the settings yourself`);
  try {
    return { bytes: readFileSync(target), mode: found.mode & 0o777 };
  } catch (thrown) {
    return refuse(`cannot be read (${codeOf(thrown) || thrown})`);
  }
}

/** An empty text if there is no file. */
export function settingsText(file: string, bytes: Uint8Array | undefined): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new ProxyError("invalid_request", `${file} is not UTF-8 text. It was not changed.`, { cause });
  }
}

export const isSame = (one: Uint8Array | undefined, other: Uint8Array | undefined): boolean =>
  one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0;

export const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
