import { ProxyError } from "../errors";
import { readPrivate, writePrivate } from "./files";
import { jsonFault } from "./json-fault";
import { type Config, parseConfig } from "./schema";

/** Far more than the largest config anybody writes. */
const maxBytes = 4 * 1024 * 1024;

export interface ConfigStore {
  /** What holds now, defaults included. Read it at use and keep no copy: `save` replaces it. */
  readonly current: Config;
  /** Only what the owner set, as the file has it. */
  readonly stored: Record<string, unknown>;
  /**
   * Checks, writes and applies, or changes nothing: `invalid_request` when a key or value is wrong, `internal` with the
   * code `config_write_failed` when the file cannot be written.
   */
  save(stored: Record<string, unknown>): void;
}

/** Loads the config; a missing file means defaults. Throws `invalid_request` naming the file and the place at fault; the file stays as it is. */
export function openConfig(path: string): ConfigStore {
  let stored = readStored(path);
  let current = parseStored(path, stored);
  return {
    get current() {
      return current;
    },
    get stored() {
      return stored;
    },
    save(next) {
      const parsed = parseConfig(next);
      write(path, next);
      stored = next;
      current = parsed;
    },
  };
}

function readStored(path: string): Record<string, unknown> {
  const text = readPrivate(path, maxBytes);
  if (text === undefined) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    const { line, column } = jsonFault(text);
    throw new ProxyError("invalid_request", `${path} is not valid JSON at line ${line}, column ${column}.`, {
      cause: error,
    });
  }
}

function parseStored(path: string, stored: unknown): Config {
  try {
    return parseConfig(stored);
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    throw new ProxyError(error.kind, `${path} was not accepted: ${error.message}`, { ...error.details, cause: error });
  }
}

function write(path: string, stored: Record<string, unknown>): void {
  try {
    writePrivate(path, `${JSON.stringify(stored, null, 2)}\n`);
  } catch (error) {
    throw new ProxyError(
      "internal",
      "The config could not be written, so nothing was changed; is the disk full or read-only?",
      {
        code: "config_write_failed",
        cause: error,
      },
    );
  }
}
