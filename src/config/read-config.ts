/** Reads the config file. Errors name the file, line and column. */
import { statSync } from "node:fs";
import { ProxyError } from "../lib/errors";
import { formatPath } from "../lib/schema-errors";
import { readPrivate } from "./files";
import { findJsonError, positionOf, type TextPosition } from "./json-position";
import type { Stored } from "./patch";
import { type Config, parseConfig } from "./schema";

/** Far more than the largest config anybody writes. */
const maxBytes = 4 * 1024 * 1024;

export interface ConfigReading {
  text: string;
  stored: Stored;
  config: Config;
}

/**
 * The current content of the file.
 * @param last The text to use if the file is missing: an editor may be about to replace it.
 * @throws ProxyError `invalid_request` with the file and the position of the error
 */
export function readConfig(path: string, last: { text: string; stored?: Stored }): ConfigReading {
  const text = readFile(path) ?? last.text;
  const stored = (text === last.text ? last.stored : undefined) ?? parseText(path, text);
  return { text, stored, config: parseStored(path, text, stored) };
}

/** The file without changing its permissions; undefined if there is none. @throws as {@link readConfig} */
export function lookAtConfig(path: string): { stored: Stored; config: Config } | undefined {
  const text = readFile(path, { tighten: false });
  if (text === undefined) return undefined;
  const stored = parseText(path, text);
  return { stored, config: parseStored(path, text, stored) };
}

function readFile(path: string, options?: Parameters<typeof readPrivate>[2]): string | undefined {
  try {
    return readPrivate(path, maxBytes, options);
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    throw new ProxyError(thrown.kind, thrown.words, { ...thrown.details, code: invalid });
  }
}

/** The code of an error of this file, for programs. */
const invalid = "config_invalid";

/** Identifies the present file by its times; undefined if there is none. */
export function fingerprint(path: string): string | undefined {
  try {
    const { ino, size, mtimeNs } = statSync(path, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch {
    return undefined;
  }
}

function parseText(path: string, text: string): Stored {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProxyError("invalid_request", `${path} is not valid JSON at ${inWords(findJsonError(text))}.`, {
      code: invalid,
      cause,
    });
  }
}

function parseStored(path: string, text: string, stored: unknown): Config {
  try {
    return parseConfig(stored);
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    const { param } = thrown.details;
    const place = param === undefined ? "" : ` at ${inWords(positionOf(text, param, formatPath))}`;
    throw new ProxyError(thrown.kind, `${path} was not accepted${place}: ${thrown.message}`, {
      ...thrown.details,
      code: invalid,
      cause: thrown,
    });
  }
}

const inWords = ({ line, column }: TextPosition) => `line ${line}, column ${column}`;
