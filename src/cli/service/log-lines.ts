/** Reads the log file of a service, for the systems whose manager keeps no log. */
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** At most so many bytes from the end are looked at. */
const maxBytes = 4 * 1024 * 1024;

/** The last lines of a file; none if there is no file. */
export function lastLines(path: string, count: number): string[] {
  if (!existsSync(path)) return [];
  const { size } = statSync(path);
  const text = readFrom(path, Math.max(0, size - maxBytes));
  return text
    .replace(/\n$/, "")
    .split("\n")
    .slice(-count)
    .filter((line) => line !== "");
}

/** Passes on what is appended to the file until the signal aborts. A file that was replaced is read from its beginning. */
export async function followFile(path: string, write: (text: string) => void, signal: AbortSignal): Promise<void> {
  let { size: position, ino } = existsSync(path) ? statSync(path) : { size: 0, ino: 0 };
  while (!signal.aborted) {
    const now = existsSync(path) ? statSync(path) : undefined;
    if (now && (now.ino !== ino || now.size < position)) [position, ino] = [0, now.ino];
    if (now && now.size > position) {
      const text = readFrom(path, position);
      position += Buffer.byteLength(text);
      write(text);
    }
    await wait(250, undefined, { signal }).catch(() => {});
  }
}

/** From this position on, up to the last whole line. */
function readFrom(path: string, position: number): string {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(Math.min(maxBytes, Math.max(0, fstatSync(file).size - position)));
    const length = readSync(file, bytes, 0, bytes.length, position);
    const end = bytes.subarray(0, length).lastIndexOf(0x0a) + 1;
    return bytes.subarray(0, end).toString();
  } finally {
    closeSync(file);
  }
}
