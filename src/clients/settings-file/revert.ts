/** Removes dragoman's settings from a file that was changed after dragoman wrote to it, by comparing the parsed settings. */
import { ProxyError } from "../../errors";
import { isObject } from "../../json";
import { type Edit, type Path, SettingsFault, settingAt } from "../edit";
import { editSettings, readSettings, type SettingsFormat, withEdits } from "../formats";

export interface Versions {
  /** The original text; empty if there was no file. */
  before: string;
  written: string;
  now: string;
}

export interface Ours {
  format: SettingsFormat;
  /** The paths of dragoman's settings. */
  paths: readonly Path[];
  /** The settings without the client's own state. */
  bookkeeping?(settings: Record<string, unknown>): unknown;
}

/** The text without dragoman's settings; or those of them that were changed, such as `env.ANTHROPIC_MODEL`. */
export type Reverted = { text: string } | { changed: string[] };

/**
 * Gives each of dragoman's settings its original value, or removes it. Everything else stays as it is.
 * @param force Also for settings that were changed since.
 * @returns Undefined if a text cannot be parsed, or cannot be edited without changing other settings.
 */
export function revertValues(
  { format, paths, bookkeeping = (settings) => settings }: Ours,
  { before, written, now }: Versions,
  force: boolean,
): Reverted | undefined {
  try {
    const read = (text: string) => readSettings(format, text);
    const [was, is] = [read(before), read(now)];
    const [first, ours, found] = [before, written, now].map((text) => bookkeeping(read(text)));
    const differ = (one: unknown, other: unknown, path: Path) =>
      !Bun.deepEquals(settingAt(one, path), settingAt(other, path));
    const due = paths.filter((path) => differ(ours, first, path) && differ(found, first, path));
    const changed = due.filter((path) => settingAt(found, path) !== undefined && differ(found, ours, path));
    if (changed.length > 0 && !force) return { changed: changed.map(serialized) };
    const edits = due.map((path): Edit => ({ path, value: settingAt(was, path) }));
    const text = editSettings(format, now, [...edits, ...emptied(withEdits(is, edits), was, due)]);
    return { text: isNothing(text) && before === "" ? "" : text };
  } catch (thrown) {
    if (thrown instanceof SettingsFault || thrown instanceof ProxyError) return undefined;
    throw thrown;
  }
}

type Settings = Record<string, unknown>;

/** Objects and lists that are empty without dragoman's settings. They stay only if they were empty before. */
function emptied(left: Settings, was: Settings, paths: readonly Path[]): Edit[] {
  const above = paths.flatMap((path) => path.slice(1).map((_, at) => path.slice(0, at + 1)));
  const edits: Edit[] = [];
  for (const path of above.toSorted((a, b) => b.length - a.length))
    if (isEmpty(settingAt(withEdits(left, edits), path))) {
      const value = settingAt(was, path);
      edits.push({ path, value: value === null || isEmpty(value) ? value : undefined });
    }
  return edits;
}

const isEmpty = (value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;

const isNothing = (text: string) => /^\s*(?:\{\s*\}|\[\s*\])?\s*$/.test(text);

const serialized = (path: Path): string => path.map((step) => (typeof step === "string" ? step : step.name)).join(".");
