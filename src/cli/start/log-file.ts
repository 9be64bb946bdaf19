/** `--log-file`: what would go to stderr goes to a file, for service managers that keep no log. */
import { appendFileSync, renameSync, statSync } from "node:fs";
import { codeOf, ProxyError } from "../../lib/errors";

/** Bytes; then the file becomes `<path>.1`, which replaces the one before. */
const maxBytes = 10 * 1024 * 1024;

/** A file in a folder of somebody else stays where it is, and grows. */
function putAside(path: string): void {
  try {
    renameSync(path, `${path}.1`);
  } catch {
    // tried again after as many bytes
  }
}

/** @throws ProxyError if the file cannot be written. A failure later loses lines, and the server keeps running. */
export function logToFile(path: string, limit = maxBytes): void {
  let size = 0;
  const append = (text: string | Uint8Array) => {
    if (size > limit) {
      size = 0;
      putAside(path);
    }
    appendFileSync(path, text, { mode: 0o600 });
    size += Buffer.byteLength(text);
  };
  try {
    size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    append("");
  } catch (thrown) {
    throw new ProxyError("internal", `The log file ${path} cannot be written (${codeOf(thrown)}).`, {
      code: "log_file_unwritable",
      cause: thrown,
    });
  }
  const write = (text: string | Uint8Array): boolean => {
    try {
      append(text);
    } catch {
      // A full disk: the proxy's work goes on without its lines.
    }
    return true;
  };
  process.stderr.write = write;
}
