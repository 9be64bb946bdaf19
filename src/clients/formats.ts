/** Edits the text of a client's settings file without changing anything else, and verifies the result by parsing it. */

import { ProxyError } from "../lib/errors";
import { isObject } from "../lib/json";
import { editDotenv, parseDotenv } from "./dotenv-text";
import { type Edit, isNamed, NotEditable, type Path, SettingsFault, settingAt } from "./edit";
import { editJson, parseJsonc } from "./json-text";
import { editToml, parseToml } from "./toml-text";

export type SettingsFormat = keyof typeof formats;

interface Language {
  /** @throws SettingsFault */
  parse(text: string): unknown;
  /** @param whole The settings after the edits. */
  edit(text: string, edits: readonly Edit[], whole: object): string;
}

/** A JSON file that is a list, as settings `{ list }`. */
const jsonList: Language = {
  parse(text) {
    const list = parseJsonc(text) ?? [];
    if (!Array.isArray(list)) throw new SettingsFault("it is not a list", 1);
    return list.length === 0 ? {} : { list };
  },
  edit: (text, edits, whole) =>
    editJson(
      text,
      edits.map(({ path: [, ...path], ...edit }) => ({ ...edit, path })),
      (settingAt(whole, ["list"]) ?? []) as unknown[],
    ),
};

const formats = {
  json: { parse: parseJsonc, edit: editJson },
  "json-list": jsonList,
  toml: { parse: parseToml, edit: editToml },
  env: { parse: parseDotenv, edit: editDotenv },
} satisfies Record<string, Language>;

const byteOrderMark = "\uFEFF";

/** Bytes. No settings file is expected to be larger. */
export const maxBytes = 4 * 1024 * 1024;

/** The parsed settings; `{}` for an empty text. @throws SettingsFault */
export function readSettings(format: SettingsFormat, text: string): Record<string, unknown> {
  const value = formats[format].parse(text.replace(byteOrderMark, "")) ?? {};
  if (!isObject(value)) throw new SettingsFault("it is not a set of named settings", 1);
  return value;
}

/**
 * The edited text. Everything else keeps its bytes: comments, order, indentation, line endings.
 * @throws SettingsFault if the text cannot be parsed; NotEditable
 */
export function editSettings(format: SettingsFormat, text: string, edits: readonly Edit[]): string {
  const before = readSettings(format, text);
  const due = edits.filter(({ path, keeps }) => !keeps?.(settingAt(before, path)));
  const wanted = withEdits(before, due);
  if (Bun.deepEquals(wanted, before)) return text;
  const [mark, body] = text.startsWith(byteOrderMark) ? [byteOrderMark, text.slice(1)] : ["", text];
  const changed = due.filter(({ path, value }) => !Bun.deepEquals(settingAt(before, path), value));
  const after = mark + edited(format, body, changed, wanted);
  if (!saysSame(format, after, wanted)) throw new NotEditable();
  return after;
}

/** The text after the edits; that before them if one of them makes a text that cannot be read. */
function edited(format: SettingsFormat, text: string, edits: readonly Edit[], wanted: object): string {
  try {
    return formats[format].edit(text, edits, wanted);
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return text;
    throw thrown;
  }
}

function saysSame(format: SettingsFormat, text: string, wanted: object): boolean {
  try {
    return Bun.deepEquals(readSettings(format, text), wanted);
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return false;
    throw thrown;
  }
}

/** The settings after the edits. @throws ProxyError `conflict` if a value on a path has another type. */
export const withEdits = (settings: Record<string, unknown>, edits: readonly Edit[]): Record<string, unknown> =>
  edits.reduce(
    (edited, { path, value }) => (value === undefined ? withoutValue(edited, path) : withValue(edited, path, value)),
    settings,
  );

/** A copy without the value at a path. */
function withoutValue<T>(value: T, [step, ...rest]: Path): T {
  const isList = Array.isArray(value);
  if (step === undefined || (!isList && !isObject(value))) return value;
  const inner = settingAt(value, [step]);
  if (inner === undefined) return value;
  const kept = rest.length > 0 ? withoutValue(inner, rest) : undefined;
  if (isList) {
    const at = value.indexOf(inner);
    return (kept === undefined ? value.toSpliced(at, 1) : value.with(at, kept)) as T;
  }
  const entries = Object.entries(value).map(([name, each]) => [name, name === step ? kept : each] as const);
  return Object.fromEntries(entries.filter(([name]) => name !== step || kept !== undefined)) as T;
}

/** A copy with the value at a path. Missing parents are created; a parent that is not a record or a list is refused. */
function withValue<T>(value: T, [step, ...rest]: Path, put: unknown): T {
  if (step === undefined) return put as T;
  if (typeof step !== "string") {
    const list = listOf(value);
    const at = list.findIndex((item) => isNamed(item, step));
    const item = withValue(list[at], rest, put);
    return (at < 0 ? [...list, item] : list.with(at, item)) as T;
  }
  if (value !== undefined && value !== null && !isObject(value)) throw wrongShape(step);
  const record = (value ?? {}) as Record<string, unknown>;
  return { ...record, [step]: withValue(Object.hasOwn(record, step) ? record[step] : undefined, rest, put) } as T;
}

function listOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw wrongShape("a list");
}

const wrongShape = (name: string) =>
  new ProxyError("conflict", `a value of another type is where ${name} belongs; fix the file first`);
