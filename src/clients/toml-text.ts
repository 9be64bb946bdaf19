/** TOML: inserts and removes keys and tables. Bun parses it; toml-eslint-parser (npm) finds the positions of statements. */
import { type AST, ParseError, parseTOML, traverseNodes } from "toml-eslint-parser";
import { isObject } from "../lib/json";
import type { TextEdit } from "../lib/net/json/json-edit";
import { type Edit, SettingsFault } from "./edit";
import { applyEdits, ended, lineEnding } from "./text-edits";

/** Integers beyond 2^53 are read as texts of their digits. @throws SettingsFault */
export function parseToml(text: string): unknown {
  const readable = withoutLargeIntegers(text);
  try {
    return Bun.TOML.parse(readable);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.replace(/^TOML Parse error: /, "") : String(thrown);
    // The quoted part may be a key.
    throw new SettingsFault(why.replace(/:? ".*$/s, ""), faultLine(readable));
  }
}

/** Bun refuses integers beyond 2^53, which TOML allows. Each becomes a text. */
function withoutLargeIntegers(text: string): string {
  if (!/\d[\d_a-f]{12}/i.test(text)) return text;
  const changes: TextEdit[] = [];
  traverseNodes(programOf(text), {
    enterNode(node) {
      if (node.type !== "TOMLValue" || node.kind !== "integer" || !isLarge(node.bigint)) return;
      const [start, end] = node.range;
      changes.push({ start, end, text: JSON.stringify(`integer ${text.slice(start, end)}`) });
    },
    leaveNode() {},
  });
  return applyEdits(text, changes);
}

const isLarge = (value: bigint) => BigInt.asIntN(64, value) === value && !Number.isSafeInteger(Number(value));

/** Edits keys before the first table or in the table that has them, and whole tables. */
export function editToml(text: string, edits: readonly Edit[]): string {
  return edits.reduce((now, { path, value }) => {
    const names = path as string[];
    if (value === undefined) return takeOut(now, names);
    return isObject(value) ? putTable(now, names, value) : putKey(now, names, value);
  }, text);
}

interface Statement {
  kind: "table" | "key";
  /** From the root. */
  path: string[];
  start: number;
  /** The position after its line. */
  end: number;
  valueStart: number;
  valueEnd: number;
}

function putKey(text: string, path: string[], value: unknown): string {
  const statements = read(text);
  const found = keyOf(statements, path);
  if (found) return withValue(text, found, value);
  const inline = putInline(text, path, value);
  if (inline !== undefined) return inline;
  const parent = path.slice(0, -1);
  const isParent = ({ path: own }: { path: string[] }) => isSame(own.slice(0, parent.length), parent);
  if (
    parent.length > 0 &&
    !statements.some((each) => each.kind === "key" && !isInTable(statements, each) && isParent(each))
  )
    return putInTable(text, statements, path, value);
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

/** Whether a table begins before the key. */
const isInTable = (statements: Statement[], { start }: Statement): boolean =>
  statements.some((each) => each.kind === "table" && each.start < start);

/** Adds a key to its table, after the keys that this has; a table that is missing is added at the end. */
function putInTable(text: string, statements: Statement[], path: string[], value: unknown): string {
  const [parent, name] = [path.slice(0, -1), path.at(-1)!];
  const at = statements.findIndex((each) => each.kind === "table" && isSame(each.path, parent));
  if (at < 0) return withTable(text, parent, { [name]: value });
  const next = statements.findIndex((each, later) => later > at && each.kind === "table");
  const { end } = statements.at(next < 0 ? -1 : next - 1)!;
  return `${ended(text.slice(0, end))}${key(name)} = ${print(value)}${lineEnding(text)}${text.slice(end)}`;
}

const keyOf = (statements: Statement[], path: string[]) =>
  statements.find((statement) => statement.kind === "key" && isSame(statement.path, path));

const withValue = (
  text: string,
  { valueStart, valueEnd }: Pick<Statement, "valueStart" | "valueEnd">,
  value: unknown,
) => applyEdits(text, [{ start: valueStart, end: valueEnd, text: print(value) }]);

/** Replaces the whole table, including the tables below it. */
function putTable(text: string, path: string[], value: Record<string, unknown>): string {
  const found = keyOf(read(text), path);
  if (found) return withValue(text, found, value);
  const inline = putInline(text, path, value);
  if (inline !== undefined) return inline;
  const old = tablesIn(text).filter(({ path: own }) => isSame(own.slice(0, path.length), path));
  if (old.length === 0) return withTable(text, path, value);
  const [first, ...others] = old;
  const changes: TextEdit[] = [
    { start: first!.start, end: first!.end, text: tableText(path, value, lineEnding(text)) },
    ...others.map(({ start, end }) => ({ start, end, text: "" })),
  ];
  return applyEdits(text, changes);
}

/** The value put into the innermost inline table that the path leads into; undefined if there is none. */
function putInline(text: string, path: string[], value: unknown): string | undefined {
  const holder = inlineTables(text).findLast(({ path: own }) => own.length < path.length && leadsInto(path, own));
  if (!holder) return undefined;
  const found = holder.entries.find(({ path: own }) => isSame(own, path));
  if (found) return withValue(text, found, value);
  // Keys with dots: `dragoman.name = "x"`.
  const without = takeInline(text, path);
  if (without !== text) return putInline(without, path, value);
  const added = `${path.slice(holder.path.length).map(key).join(".")} = ${print(value)}`;
  const last = holder.entries.at(-1);
  if (last) return applyEdits(text, [{ start: last.valueEnd, end: last.valueEnd, text: `, ${added}` }]);
  return applyEdits(text, [{ start: holder.start, end: holder.end, text: `{ ${added} }` }]);
}

/** Removes what is at a path, or below it, from the inline tables. */
function takeInline(text: string, path: string[]): string {
  for (const { path: own, start, end, entries } of inlineTables(text)) {
    const at = entries.findIndex((entry) => own.length < path.length && leadsInto(entry.path, path));
    if (at < 0) continue;
    const [before, next] = [entries[at - 1], entries[at + 1]];
    const edit = before
      ? { start: before.valueEnd, end: entries[at]!.valueEnd, text: "" }
      : next
        ? { start: entries[at]!.start, end: next.start, text: "" }
        : { start, end, text: "{}" };
    return takeInline(applyEdits(text, [edit]), path);
  }
  return text;
}

/** Whether a path begins with another one. */
const leadsInto = (path: readonly string[], outer: readonly string[]) => isSame(path.slice(0, outer.length), outer);

/** The text with a further table at its end. */
const withTable = (text: string, path: string[], value: Record<string, unknown>): string =>
  `${ended(text)}${text.trim() === "" ? "" : lineEnding(text)}${tableText(path, value, lineEnding(text))}`;

const tableText = (path: string[], value: Record<string, unknown>, eol: string): string =>
  [`[${path.map(key).join(".")}]`, ...Object.entries(value).map(([name, item]) => `${key(name)} = ${print(item)}`)]
    .map((line) => line + eol)
    .join("");

/** Removes a key or a table, with everything below it. */
function takeOut(text: string, path: string[]): string {
  const isBelow = ({ path: own }: { path: string[] }) => isSame(own.slice(0, path.length), path);
  const tables = tablesIn(text).filter(isBelow);
  const keys = read(text).filter((statement) => statement.kind === "key" && isBelow(statement));
  const apart = keys.filter(({ start }) => !tables.some((table) => table.start <= start && start < table.end));
  const rest = applyEdits(text, [
    ...tables.map(({ start, end }) => ({ start: withBlankLine(text, start), end, text: "" })),
    ...apart.map(({ start, end }) => ({ start, end, text: "" })),
  ]);
  return takeInline(rest, path);
}

/** The start of the blank line before a table. */
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

/** The start of the comments directly above a line. */
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
  // Dates and times are written as Bun read them.
  if (isObject(value) && ![Object.prototype, null].includes(Object.getPrototypeOf(value))) return String(value);
  if (!isObject(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${key(name)} = ${print(item)}`)
    .join(", ")} }`;
}

function read(text: string): Statement[] {
  return programOf(text).body[0].body.flatMap((node) => {
    if (node.type === "TOMLKeyValue") return keyStatement(text, [], node);
    const path = namesOf(node.key);
    const header = statement(text, "table", path, [node.range[0], node.key.range[1]]);
    return [header, ...node.body.map((inner) => keyStatement(text, path, inner))];
  });
}

interface InlineTable {
  /** From the root. */
  path: string[];
  /** From its opening brace to the position after its closing one. */
  start: number;
  end: number;
  entries: Pick<Statement, "path" | "start" | "valueStart" | "valueEnd">[];
}

/** The inline tables `{ … }`, each before those in it. Those in lists have no path. */
const inlineTables = (text: string): InlineTable[] =>
  programOf(text).body[0].body.flatMap((node) => {
    if (node.type === "TOMLKeyValue") return inlineIn([], node);
    return node.kind === "array" ? [] : node.body.flatMap((inner) => inlineIn(namesOf(node.key), inner));
  });

function inlineIn(above: string[], node: AST.TOMLKeyValue): InlineTable[] {
  if (node.value.type !== "TOMLInlineTable") return [];
  const path = [...above, ...namesOf(node.key)];
  const entries = node.value.body.map((entry) => ({
    path: [...path, ...namesOf(entry.key)],
    start: entry.range[0],
    valueStart: entry.value.range[0],
    valueEnd: entry.value.range[1],
  }));
  const [start, end] = node.value.range;
  return [{ path, start, end, entries }, ...node.value.body.flatMap((entry) => inlineIn(path, entry))];
}

const keyStatement = (text: string, table: string[], { key, value }: AST.TOMLKeyValue) =>
  statement(text, "key", [...table, ...namesOf(key)], [key.range[0], value.range[1]], value.range[0]);

function statement(
  text: string,
  kind: Statement["kind"],
  path: string[],
  [first, valueEnd]: AST.Range,
  valueStart = valueEnd,
): Statement {
  const start = text.lastIndexOf("\n", first - 1) + 1;
  return { kind, path, start, end: text.indexOf("\n", valueEnd) + 1 || text.length, valueStart, valueEnd };
}

const namesOf = ({ keys }: AST.TOMLKey) => keys.map((each) => (each.type === "TOMLBare" ? each.name : each.value));

/** @throws SettingsFault */
function programOf(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text, { tomlVersion: "1.1" });
  } catch (thrown) {
    if (thrown instanceof ParseError) throw new SettingsFault(thrown.message, thrown.lineNumber);
    throw thrown;
  }
}

/** Maximum characters to parse: about a second. */
const maxRead = 2_000_000;

/**
 * The first line of the statement that cannot be parsed, which the parser does not report. Parses ever longer prefixes
 * of the text: a prefix may fail because it ends inside a statement, so the longest one that parses counts.
 * @returns Undefined if the text is too long to be parsed that often.
 */
function faultLine(text: string): number | undefined {
  const lines = text.split("\n");
  if ((lines.length * text.length) / 2 > maxRead) return undefined;
  let good = 0;
  for (let count = 1; count < lines.length; count++) if (reads(lines.slice(0, count).join("\n"))) good = count;
  return good + 1;
}

function reads(text: string): boolean {
  try {
    Bun.TOML.parse(text);
    return true;
  } catch {
    return false;
  }
}
