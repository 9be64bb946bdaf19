/** A change of a client's settings, as a path and a value, whatever the format. */
import { ProxyError } from "../lib/errors";
import { isObject } from "../lib/json";

/** For `keeps`: any value stays. */
export const whatever = (present: unknown): boolean => present !== undefined;

/** Names of members, and `{ name }` for the item of a list with that name. */
export type Path = readonly (string | { name: string })[];

export interface Edit {
  path: Path;
  /** Replaces the whole value; undefined removes it. */
  value: unknown;
  /** Whether a value that is there stays. */
  keeps?(present: unknown): boolean;
}

/** The text is not a valid settings file of its format. */
export class SettingsFault extends Error {
  constructor(
    message: string,
    /** From 1; undefined if unknown. */
    readonly line?: number,
  ) {
    super(message);
  }
}

/** The text cannot be edited without changing other settings. */
export class NotEditable extends ProxyError {
  constructor() {
    super("conflict", "it is written in a way that dragoman cannot edit without touching other settings");
  }
}

/** The value at a path; undefined if there is none. */
export function settingAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (typeof step !== "string") return Array.isArray(inner) ? inner.find((item) => isNamed(item, step)) : undefined;
    return isObject(inner) && Object.hasOwn(inner, step) ? inner[step] : undefined;
  }, value);
}

export const isNamed = (item: unknown, { name }: { name: string }) => isObject(item) && item.name === name;
