/** Removes dragoman's settings from a text that was changed since, by comparing parsed settings, not lines. */
import { ProxyError } from "../errors";
import { isObject } from "../json";
import { type Edit, type Path, SettingsFault } from "./edit";
import { editSettings, readSettings, type SettingsFormat, settingAt, withEdits } from "./formats";

export interface Versions {
  /** What stood there before us; empty when there was no file. */
  before: string;
  written: string;
  now: string;
}

export interface Ours {
  format: SettingsFormat;
  /** Where we have put something. */
  paths: readonly Path[];
  /** The settings without what the client notes there for itself. */
  bookkeeping?(settings: Record<string, unknown>): unknown;
}

/** The text without ours; or which of ours somebody has changed, as `env.ANTHROPIC_MODEL`. */
export type TakenBack = { text: string } | { changed: string[] };

/**
 * Each of our settings says again what it said before us, or nothing; everything else stays as it is.
 * @param force Also those of ours that somebody has changed since.
 * @returns Undefined when a text does not read, or cannot be edited without touching the rest.
 */
export function takeBack(
  { format, paths, bookkeeping = (settings) => settings }: Ours,
  { before, written, now }: Versions,
  force: boolean,
): TakenBack | undefined {
  try {
    const read = (text: string) => readSettings(format, text);
    const [was, is] = [read(before), read(now)];
    const [told, ours, found] = [before, written, now].map((text) => bookkeeping(read(text)));
    const differ = (one: unknown, other: unknown, path: Path) =>
      !Bun.deepEquals(settingAt(one, path), settingAt(other, path));
    const due = paths.filter((path) => differ(ours, told, path) && differ(found, told, path));
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

/** Records and lists that held ours alone say again what they said before, where that was nothing of anybody's. */
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

const isNothing = (text: string) => /^\s*(?:\{\s*\})?\s*$/.test(text);

const serialized = (path: Path): string => path.map((step) => (typeof step === "string" ? step : step.name)).join(".");
