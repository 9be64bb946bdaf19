/** YAML: inserts and removes top-level keys and the items of their lists. Bun parses it. */
import { isObject } from "../json";
import { type Edit, type Path, SettingsFault } from "./edit";
import { ended, faultLine, lineEnding } from "./text-edits";

/** @throws SettingsFault */
export function parseYaml(text: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.replace(/^YAML Parse error: /, "") : String(thrown);
    throw new SettingsFault(why, faultLine(text, Bun.YAML.parse));
  }
}

/** Edits top-level keys, and items by name in their lists. */
export function editYaml(text: string, edits: readonly Edit[]): string {
  return edits.reduce((now, { path: [name, item], value }) => {
    if (value === undefined) return takeOut(now, name as string, item);
    const put = item === undefined ? putKey : putItem;
    return put(now, name as string, value);
  }, text);
}

interface Block {
  name: string;
  /** Indexes of lines; the end is exclusive. Comments and blank lines at the end are not included. */
  first: number;
  last: number;
}

function putKey(text: string, name: string, value: unknown): string {
  const lines = split(text);
  const found = blocksIn(lines).find((block) => block.name === name);
  if (!found) return `${ended(text)}${name}: ${print(value)}${lineEnding(text)}`;
  const [, key = "", , comment = "", eol = ""] = keyLine.exec(lines[found.first]!) ?? [];
  return lines.toSpliced(found.first, found.last - found.first, `${key} ${print(value)}${comment}${eol}`).join("");
}

function putItem(text: string, name: string, value: unknown): string {
  const eol = lineEnding(text);
  const lines = split(text);
  const found = blocksIn(lines).find((block) => block.name === name);
  if (!found) return `${ended(text)}${[`${name}:`, ...itemLines(value, "  ")].map((line) => line + eol).join("")}`;
  const items = itemsIn(lines, found);
  const [first] = items;
  const indent = first ? /^ */.exec(lines[first.first]!)![0] : "  ";
  const added = itemLines(value, indent).map((line) => line + eol);
  const old = items.find((item) => isObject(value) && nameOf(lines.slice(item.first, item.last)) === value.name);
  if (old) return lines.toSpliced(old.first, old.last - old.first, ...added).join("");
  // `models: []` and `models:` have no items yet.
  const head = first ? [] : [`${name}:${keyLine.exec(lines[found.first]!)?.[3] ?? ""}${eol}`];
  const [at, gone] = first ? [found.last, 0] : [found.first, found.last - found.first];
  const before = lines.slice(0, at).join("");
  return ended(before) + [...head, ...added, ...lines.slice(at + gone)].join("");
}

function takeOut(text: string, name: string, item: Path[number] | undefined): string {
  const lines = split(text);
  const block = blocksIn(lines).find((each) => each.name === name);
  if (!block) return text;
  if (item === undefined) return lines.toSpliced(block.first, block.last - block.first).join("");
  const items = itemsIn(lines, block);
  const found = items.find(({ first, last }) => nameOf(lines.slice(first, last)) === (item as { name: string }).name);
  if (!found) return text;
  if (items.length === 1) return putKey(text, name, []);
  return lines.toSpliced(found.first, found.last - found.first).join("");
}

/** Key, its value on this line, a comment behind it, and the line's ending. */
const keyLine =
  /^((?:"[^"]*"|'[^']*'|[^\s#"'[\]{}&*!|>%@`-][^#:]*?)\s*:)(?=\s|$)[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|(?!#).*?)([ \t]+#.*?)?(\r?\n)?$/;

const split = (text: string) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

function blocksIn(lines: string[]): Block[] {
  const blocks: Block[] = [];
  for (const [at, line] of lines.entries()) {
    const open = blocks.at(-1);
    const key = keyLine
      .exec(line)?.[1]
      ?.replace(/\s*:$/, "")
      .replace(/^(["'])(.*)\1$/, "$2");
    if (key !== undefined) blocks.push({ name: key, first: at, last: at + 1 });
    else if (open && /^(?:[ \t]+[^\s#]|- |-\r?\n)/.test(line)) open.last = at + 1;
  }
  return blocks;
}

function itemsIn(lines: string[], { first, last }: Block): Block[] {
  const items: Block[] = [];
  let indent: number | undefined;
  for (let at = first + 1; at < last; at++) {
    const dash = /^( *)-(?:\s|$)/.exec(lines[at]!)?.[1]?.length;
    indent ??= dash;
    const open = items.at(-1);
    if (dash !== undefined && dash === indent) items.push({ name: "", first: at, last: at + 1 });
    else if (open && !/^\s*(?:#|$)/.test(lines[at]!)) open.last = at + 1;
  }
  return items;
}

function nameOf(lines: string[]): unknown {
  try {
    const item = Bun.YAML.parse(lines.join(""));
    return Array.isArray(item) && isObject(item[0]) ? item[0].name : undefined;
  } catch {
    return undefined; // an alias; if it belongs to dragoman's settings, the final check fails
  }
}

function itemLines(value: unknown, indent: string): string[] {
  if (!isObject(value)) return [`${indent}- ${print(value)}`];
  return Object.entries(value).map(([name, each], at) => `${indent}${at === 0 ? "-" : " "} ${name}: ${print(each)}`);
}

/** Lists and records are written on one line. */
function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`;
  if (isObject(value))
    return `{ ${Object.entries(value)
      .map(([name, each]) => `${name}: ${print(each)}`)
      .join(", ")} }`;
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = /^[A-Za-z][\w./-]*(?::[\w./-]+)*(?: [\w./-]+)*$/.test(value) && Bun.YAML.parse(value) === value;
  // Words that YAML 1.1 reads as booleans are quoted.
  return plain && !/^(?:y|n|yes|no|on|off)$/i.test(value) ? value : JSON.stringify(value);
}
