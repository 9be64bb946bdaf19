/** Puts another executable in the place of this one, in one step, and takes that back. */
import { chmodSync, copyFileSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { codeOf } from "../../errors";

interface Replacement {
  /** Puts the old executable back. */
  undo(): void;
  /** Removes the old executable. */
  settle(): void;
}

/** The old executable meanwhile. */
const previousOf = (path: string): string => `${path}.previous`;

/**
 * @param path The executable, which may be running.
 * @param fresh The new one, in the same folder; it is gone afterwards.
 * @throws The system's own error; the old executable is in its place then.
 */
export function replaceProgram(path: string, fresh: string): Replacement {
  const previous = previousOf(path);
  chmodSync(fresh, statSync(path).mode & 0o777);
  rmSync(previous, { force: true });
  if (process.platform === "win32") moveAside(path, fresh, previous);
  else {
    keepCopy(path, previous);
    renameSync(fresh, path);
  }
  return {
    undo() {
      // On Windows nothing may be there, and the program that runs from it has ended by now.
      if (process.platform === "win32") rmSync(path, { force: true });
      renameSync(previous, path);
    },
    settle() {
      try {
        rmSync(previous, { force: true });
      } catch (thrown) {
        // Windows keeps the file of a running program; the next update removes it.
        if (process.platform !== "win32") throw thrown;
      }
    },
  };
}

/** A running program's file can be renamed on Windows, and not be replaced. */
function moveAside(path: string, fresh: string, previous: string): void {
  renameSync(path, previous);
  try {
    renameSync(fresh, path);
  } catch (thrown) {
    renameSync(previous, path);
    throw thrown;
  }
}

/** A second name of the same file, so that there is an executable at every moment. */
function keepCopy(path: string, previous: string): void {
  try {
    linkSync(path, previous);
  } catch (thrown) {
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EXDEV"].includes(codeOf(thrown))) throw thrown;
    copyFileSync(path, previous);
  }
}
