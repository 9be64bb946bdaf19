/** TOML: where its keys and tables stand, and how one is put there. Bun reads it; this knows only where a statement ends. */
import { isObject } from "../json";
import { type Edit, SettingsFault } from "./edit";
import { applyEdits, ended, faultLine, lineEnding, type TextEdit } from "./text-edits";

/** Integers beyond 2^53 are read as texts of their digits. @throws SettingsFault */
export function parseToml(text: string): unknown {
  const readable = withoutLargeIntegers(text);
  try {
    return Bun.TOML.parse(readable);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.replace(/^TOML Parse error: /, "") : String(thrown);
    // What it cites may be a key.
    throw new SettingsFault(why.replace(/:? ".*$/s, ""), faultLine(readable, Bun.TOML.parse));
  }
}

/** Not a date, a part of a float, or a name within an inline table. */
const integer = /(?<![\w.+-])[+-]?(?:0x[\da-f_]+|0o[0-7_]+|0b[01_]+|[1-9][\d_]*)(?![\w.:+-]|[ \t]*[=.])/gi;
const largest = 2n ** 63n;

/** Bun refuses integers that a number cannot hold; TOML has those of 64 bits. Each becomes a text. */
function withoutLargeIntegers(text: string): string {
  if (!/\d[\d_a-f]{12}/i.test(text)) return text;
  const changes = read(text)
    .filter(({ kind }) => kind === "key")
    .flatMap(({ valueStart, valueEnd }) => {
      const value = text.slice(valueStart, valueEnd);
      const shown = value.replace(pieces, (found) => (/^["'#]/.test(found) ? found : found.replace(integer, asText)));
      return shown === value ? [] : [{ start: valueStart, end: valueEnd, text: shown }];
    });
  return applyEdits(text, changes);
}

function asText(digits: string): string {
  const value = BigInt(digits.replace(/^[+-]|_/g, ""));
  return value <= Number.MAX_SAFE_INTEGER || value > largest ? digits : JSON.stringify(`integer ${digits}`);
}

/** Knows keys before the first table, and whole tables. */
export function editToml(text: string, edits: readonly Edit[]): string {
  return edits.reduce((now, { path, value }) => {
    const names = path as string[];
    if (value === undefined) return takeOut(now, names);
    return isObject(value) ? putTable(now, names, value) : putKey(now, names, value);
  }, text);
}

interface Statement {
  kind: "table" | "key";
  /** From the root on. */
  path: string[];
  start: number;
  /** Behind its line. */
  end: number;
  valueStart: number;
  valueEnd: number;
}

function putKey(text: string, path: string[], value: unknown): string {
  const statements = read(text);
  const found = keyOf(statements, path);
  if (found) return withValue(text, found, value);
  const eol = lineEnding(text);
  const line = `${path.map(key).join(".")} = ${print(value)}${eol}`;
  const firstTable = statements.findIndex(({ kind }) => kind === "table");
  const lastKey = statements[(firstTable < 0 ? statements.length : firstTable) - 1];
  if (lastKey) {
    const before = ended(text.slice(0, lastKey.end));
    return before + line + text.slice(lastKey.end);
  }
  if (firstTable < 0) return ended(text) + line;
  const at = commentsAbove(text, statements[firstTable]!.start);
  return `${text.slice(0, at)}${line}${eol}${text.slice(at)}`;
}

const keyOf = (statements: Statement[], path: string[]) =>
  statements.find((statement) => statement.kind === "key" && isSame(statement.path, path));

const withValue = (text: string, { valueStart, valueEnd }: Statement, value: unknown) =>
  applyEdits(text, [{ start: valueStart, end: valueEnd, text: print(value) }]);

/** Also takes away what such a table, or one below it, had before: it is replaced whole. */
function putTable(text: string, path: string[], value: Record<string, unknown>): string {
  const inline = keyOf(read(text), path);
  if (inline) return withValue(text, inline, value);
  const eol = lineEnding(text);
  const lines = [
    `[${path.map(key).join(".")}]`,
    ...Object.entries(value).map(([name, item]) => `${key(name)} = ${print(item)}`),
  ];
  const table = lines.map((line) => line + eol).join("");
  const old = tablesIn(text).filter(({ path: own }) => isSame(own.slice(0, path.length), path));
  if (old.length === 0) return `${ended(text)}${text.trim() === "" ? "" : eol}${table}`;
  const [first, ...others] = old;
  const changes: TextEdit[] = [
    { start: first!.start, end: first!.end, text: table },
    ...others.map(({ start, end }) => ({ start, end, text: "" })),
  ];
  return applyEdits(text, changes);
}

/** Also what stands below it. */
function takeOut(text: string, path: string[]): string {
  const isBelow = ({ path: own }: { path: string[] }) => isSame(own.slice(0, path.length), path);
  const tables = tablesIn(text).filter(isBelow);
  const keys = read(text).filter((statement) => statement.kind === "key" && isBelow(statement));
  const apart = keys.filter(({ start }) => !tables.some((table) => table.start <= start && start < table.end));
  return applyEdits(text, [
    ...tables.map(({ start, end }) => ({ start: withBlankLine(text, start), end, text: "" })),
    ...apart.map(({ start, end }) => ({ start, end, text: "" })),
  ]);
}

/** Where the blank line begins that sets a table apart from what stands above it. */
const withBlankLine = (text: string, start: number): number =>
  start - (/(?<=\n)\r?\n$/.exec(text.slice(0, start))?.[0].length ?? 0);

/** Each table from its header to the end of its last key. */
function tablesIn(text: string): { path: string[]; start: number; end: number }[] {
  const tables: { path: string[]; start: number; end: number }[] = [];
  for (const { kind, path, start, end } of read(text)) {
    const open = tables.at(-1);
    if (kind === "table") tables.push({ path, start, end });
    else if (open) open.end = end;
  }
  return tables;
}

/** Where the comments begin that stand right above this line. */
function commentsAbove(text: string, offset: number): number {
  let at = offset;
  for (;;) {
    const before = text.lastIndexOf("\n", at - 2) + 1;
    if (at === 0 || !/^[ \t]*#/.test(text.slice(before, at))) return at;
    at = before;
  }
}

const isSame = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((name, at) => name === other[at]);

const key = (name: string) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name));

function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`;
  // Dates and times are what Bun reads them as, and are written as they were read.
  if (isObject(value) && ![Object.prototype, null].includes(Object.getPrototypeOf(value))) return String(value);
  if (!isObject(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${key(name)} = ${print(item)}`)
    .join(", ")} }`;
}

const blank = /(?:[ \t\r\n]|#[^\n]*)*/y;
const keyPart = /[ \t]*(?:([\w-]+)|("(?:[^"\\\n]|\\.)*")|'([^'\n]*)')[ \t]*/y;
/** The largest first: `"""` begins with `"`. */
const piece =
  /"""(?:[^\\]|\\[\s\S])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}\n]|[^"'#[\]{}\n]+/y;

const pieces = new RegExp(piece, "g");

/** The statements of a text that Bun reads, or those of one that it does not: nothing is judged here. */
function read(text: string): Statement[] {
  const statements: Statement[] = [];
  let table: string[] = [];
  let at = 0;
  // A header that does not close ends behind the text.
  while (at < text.length) {
    blank.lastIndex = at;
    blank.test(text);
    const start = blank.lastIndex;
    if (start >= text.length) break;
    const lineStart = text.lastIndexOf("\n", start - 1) + 1;
    const brackets = /^\[\[?/.exec(text.slice(start, start + 2))?.[0].length ?? 0;
    const { path, end: behindKey } = readKey(text, start + brackets);
    const kind = brackets > 0 ? "table" : "key";
    // Behind `=`, or behind the header's own brackets.
    const valueStart = kind === "key" ? skipSpace(text, behindKey + 1) : behindKey + brackets;
    const { valueEnd, end } = readValue(text, valueStart);
    if (kind === "table") table = path;
    statements.push({
      kind,
      path: kind === "table" ? path : [...table, ...path],
      start: lineStart,
      end,
      valueStart,
      valueEnd,
    });
    at = end;
  }
  return statements;
}

function readKey(text: string, from: number): { path: string[]; end: number } {
  const path: string[] = [];
  let at = from;
  for (;;) {
    keyPart.lastIndex = at;
    const [, bare, quoted, literal] = keyPart.exec(text) ?? [];
    const name = bare ?? literal ?? (quoted === undefined ? undefined : unquoted(quoted));
    if (name === undefined) return { path, end: at };
    path.push(name);
    at = keyPart.lastIndex;
    if (text[at] !== ".") return { path, end: at };
    at++;
  }
}

/** A quoted key may have escapes that JSON does not know; it is none of ours then. */
function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}

/** To the end of the line in which the value ends; brackets may hold lines. */
function readValue(text: string, from: number): { valueEnd: number; end: number } {
  let at = from;
  let depth = 0;
  let valueEnd = from;
  while (at < text.length) {
    piece.lastIndex = at;
    const found = piece.exec(text)?.[0] ?? text[at]!;
    at += found.length;
    if (found === "\n" && depth === 0) return { valueEnd, end: at };
    if (found === "[" || found === "{") depth++;
    if (found === "]" || found === "}") depth--;
    if (!found.startsWith("#") && found.trim() !== "") valueEnd = at - (found.length - found.trimEnd().length);
  }
  return { valueEnd, end: at };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === " " || text[at] === "\t") at++;
  return at;
}
