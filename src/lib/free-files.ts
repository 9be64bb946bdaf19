/** Whether this process may still open files, of which connections and threads need some as well. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { codeOf } from "./errors";

const noFiles = /^(?:EMFILE|ENFILE)$/;

/**
 * A thread needs two for its event loop: where it finds none, Bun 1.4.5 ends the whole process with `ProcessFdQuotaExceeded`,
 * which nothing can catch. The rest is for what it loads, and for connections that are accepted meanwhile.
 */
const filesOfThread = 16;

/** To be called before a thread is started. @throws The system's error, with its code, if there are not enough files for it. */
export function requireFilesForThread(): void {
  const opened: number[] = [];
  try {
    while (opened.length < filesOfThread) opened.push(openSync(devNull, "r"));
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** Whether this process, or the machine, can open nothing more. */
export function isOutOfFiles(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return false;
  } catch (thrown) {
    return noFiles.test(codeOf(thrown));
  }
}
