/** Removes dragoman's settings from a file that was changed after dragoman wrote to it, by comparing the parsed settings. */
import { ProxyError } from "../../lib/errors";
import { isObject } from "../../lib/json";
import { type Edit, type Path, SettingsFault, settingAt } from "../edit";
import { editSettings, readSettings, type SettingsFormat, withEdits } from "../formats";

interface Versions {
  /** The original text; empty if there was no file. */
  before: string;
  written: string;
  now: string;
}

interface Ours {
  format: SettingsFormat;
  /** The paths of dragoman's settings. */
  paths: readonly Path[];
  /** The settings without the client's own state. */
  bookkeeping?(settings: Record<string, unknown>): unknown;
  /** Paths that the client itself changes when the person chooses a model. */
  choices?: readonly Path[];
}

/**
 * The text without dragoman's settings, which is the present one if none of them is left; or those of them that were
 * changed, such as `env.ANTHROPIC_MODEL`.
 */
export type Reverted = { text: string } | { changed: string[] };

/** What becomes of settings of dragoman that were changed since: they prevent it, are reverted too, or stay as somebody's own. */
export type OfChanged = "refuse" | "revert" | "keep";

/**
 * Gives each of dragoman's settings its original value, or removes it. Everything else stays as it is. A setting that is gone
 * by now stays away: its original value may be one of dragoman with another data folder, which was undone meanwhile.
 * @returns Undefined if a text cannot be parsed, or cannot be edited without changing other settings.
 */
export function revertValues(
  { format, paths, bookkeeping = (settings) => settings, choices = [] }: Ours,
  { before, written, now }: Versions,
  ofChanged: OfChanged,
): Reverted | undefined {
  try {
    const read = (text: string) => readSettings(format, text);
    const [was, is] = [read(before), read(now)];
    const [first, ours, found] = [before, written, now].map((text) => bookkeeping(read(text)));
    const differ = (one: unknown, other: unknown, path: Path) =>
      !Bun.deepEquals(settingAt(one, path), settingAt(other, path));
    const isChosen = (path: Path) => choices.some((choice) => Bun.deepEquals(choice, path));
    const isGone = (path: Path) => settingAt(found, path) === undefined && settingAt(ours, path) !== undefined;
    const isLeft = (path: Path) => !isGone(path) && differ(ours, first, path);
    if (!paths.some((path) => isLeft(path) && !isChosen(path))) return { text: now };
    const due = paths.filter((path) => (isLeft(path) || isChosen(path)) && differ(found, first, path));
    const isChanged = (path: Path) => differ(found, ours, path);
    const changed = due.filter((path) => isChanged(path) && !isChosen(path));
    if (changed.length > 0 && ofChanged === "refuse") return { changed: changed.map(serialized) };
    const reverted = ofChanged === "keep" ? due.filter((path) => !changed.includes(path)) : due;
    const edits = reverted.map((path): Edit => ({ path, value: settingAt(was, path) }));
    const left = editSettings(format, now, [...edits, ...emptied(withEdits(is, edits), was, reverted)]);
    const text = endedAs(before, left);
    const clean = editSettings(format, text, added(read(text), was));
    return { text: isSameBut(clean, before) && Bun.deepEquals(read(clean), was) ? before : text };
  } catch (thrown) {
    if (thrown instanceof SettingsFault || thrown instanceof ProxyError) return undefined;
    throw thrown;
  }
}

/** Without the line ending that was put behind the last line for a setting below it. */
function endedAs(before: string, text: string): string {
  const last = before.split("\n").at(-1)!;
  const bare = text.replace(/\r?\n$/, "");
  return last !== "" && bare.endsWith(last) ? bare : text;
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

/** Removes objects and lists that the client has added and that hold nothing. */
const added = (left: unknown, was: unknown, path: Path = []): Edit[] =>
  Object.entries(isObject(left) ? left : {}).flatMap(([name, value]) => {
    const before = settingAt(was, [name]);
    if (isEmpty(value) && before === undefined) return [{ path: [...path, name], value: undefined }];
    return added(value, before, [...path, name]);
  });

/** Whether a text has only words of another one: a client that writes its file anew lays it out anew and drops comments. */
function isSameBut(text: string, before: string): boolean {
  const wordsOf = (one: string) => new Set(one.match(/[^\s{}[\],:="']+/g));
  return wordsOf(text).isSubsetOf(wordsOf(before));
}

const isEmpty = (value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;

const serialized = (path: Path): string => path.map((step) => (typeof step === "string" ? step : step.name)).join(".");
