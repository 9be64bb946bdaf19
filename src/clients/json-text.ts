/** JSON with comments and trailing commas, as editors read it: finds members and named items, and inserts or removes them. */
import { type Node as JsoncNode, type ParseError, parseTree } from "jsonc-parser";
import { isObject } from "../lib/json";
import type { TextEdit } from "../lib/net/json/json-edit";
import { withoutEnd } from "../lib/without-end";
import { type Edit, isNamed, type Path, SettingsFault, settingAt } from "./edit";
import { applyEdits, ended, lineAt, lineEnding } from "./text-edits";

interface Node {
  start: number;
  end: number;
  value: unknown;
  /** The members of an object or the items of a list, in order. Of a duplicate name the last member counts, and the first item. */
  members: Member[];
}

interface Member {
  /** Undefined for an item of a list. */
  name?: string;
  start: number;
  node: Node;
}

/** @returns Undefined if the text has only comments and white space. @throws SettingsFault */
export const parseJsonc = (text: string): unknown => read(text)?.value;

/**
 * @param whole The settings after the edits.
 * @throws SettingsFault
 */
export function editJson(text: string, edits: readonly Edit[], whole: object): string {
  const eol = lineEnding(text);
  if (!read(text)) return `${ended(text)}${print(whole, "", "  ", eol)}${eol}`;
  // One after the other, because two new members of one object would have the same position.
  return edits.reduce((now, { path }) => {
    const unit = /^(?:\t|( +))(?=\S)/m.exec(now)?.[0] ?? "  ";
    return applyEdits(now, put(now, read(now)!, path, whole, { unit, eol }));
  }, text);
}

interface Style {
  unit: string;
  eol: string;
}

/** @param whole The object or list after the edits. A missing member is inserted with everything in it. */
function put(text: string, node: Node, [step, ...rest]: Path, whole: object, style: Style): TextEdit[] {
  if (step === undefined) return [];
  const wanted = settingAt(whole, [step]);
  const found =
    typeof step === "string"
      ? node.members.findLast(({ name }) => name === step)
      : node.members.find((item) => isNamed(item.node.value, step));
  if (wanted === undefined) return found ? remove(text, node, found) : [];
  if (!found) return insert(text, node, typeof step === "string" ? step : undefined, wanted, style);
  const isInside = rest.length > 0 && sameKind(found.node.value, wanted);
  if (isInside) return put(text, found.node, rest, wanted as object, style);
  if (Bun.deepEquals(found.node.value, wanted)) return [];
  const { start, end } = found.node;
  return [{ start, end, text: print(wanted, indentAt(text, found.start), style.unit, style.eol) }];
}

/** Both are objects, or both are lists. */
const sameKind = (one: unknown, other: unknown): boolean =>
  Array.isArray(one) ? Array.isArray(other) : isObject(one) && isObject(other);

/** A comment at the end of a line, which belongs to the member before it. */
const remarkBehind = /^[ \t]*(?:\/\/[^\r\n]*|\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*(?=[\r\n]))?/;

/** Appends a member, or an item without a name, in the style of those before it. */
function insert(text: string, node: Node, name: string | undefined, value: unknown, { unit, eol }: Style): TextEdit[] {
  const label = name === undefined ? "" : `${JSON.stringify(name)}: `;
  const member = (indent: string) => label + print(value, indent, unit, eol);
  const last = node.members.at(-1);
  if (!last) {
    const inside = text.slice(node.start + 1, node.end - 1);
    const base = indentAt(text, node.start);
    const kept = inside.trim() === "" ? "" : inside.trimEnd();
    const added = `${kept}${eol}${base}${unit}${member(base + unit)}${eol}${base}`;
    return [{ start: node.start + 1, end: node.end - 1, text: added }];
  }
  const comma = skip(text, last.node.end);
  const hasComma = text[comma] === ",";
  const behind = hasComma ? comma + 1 : last.node.end;
  const first: TextEdit[] = hasComma ? [] : [{ start: last.node.end, end: last.node.end, text: "," }];
  const onOwnLine = /^[ \t]*$/.test(text.slice(text.lastIndexOf("\n", last.start - 1) + 1, last.start));
  const closing = hasComma ? "," : "";
  if (!onOwnLine || !text.slice(node.start, last.start).includes("\n"))
    return [...first, { start: behind, end: behind, text: ` ${label}${onOneLine(value)}${closing}` }];
  const indent = indentAt(text, last.start);
  const at = behind + remarkBehind.exec(text.slice(behind))![0].trimEnd().length;
  return [...first, { start: at, end: at, text: `${eol}${indent}${member(indent)}${closing}` }];
}

/** Removes a member with its comma, and with its lines if nothing else is on them. */
function remove(text: string, { start: opened, end: closed, members }: Node, member: Member): TextEdit[] {
  const comma = skip(text, member.node.end);
  const hasComma = text[comma] === ",";
  const [start, end] = [member.start, hasComma ? comma + 1 : member.node.end];
  const around = text.slice(opened + 1, start) + text.slice(end, closed - 1);
  if (members.length === 1 && around.trim() === "") return [{ start: opened + 1, end: closed - 1, text: "" }];
  const before = members[members.indexOf(member) - 1];
  const at = before && !hasComma ? skip(text, before.node.end) : -1;
  const separator: TextEdit[] = at < 0 ? [] : [{ start: at, end: at + 1, text: "" }];
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const behind = /^[ \t]*(?:\r?\n)?/.exec(text.slice(end))![0];
  if (/^[ \t]*$/.test(text.slice(lineStart, start)) && behind.endsWith("\n"))
    return [...separator, { start: lineStart, end: end + behind.length, text: "" }];
  if (hasComma) return [{ start, end: end + /^[ \t]*/.exec(behind)![0].length, text: "" }];
  const kept = withoutEnd(text.slice(at + 1, start), " \t");
  return [...separator, { start: at + 1 + kept.length, end, text: "" }];
}

/** The indentation of the line that contains the offset. */
function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))![0];
}

/** Maximum characters of an object on one line, without its name. */
const lineLength = 240;

function print(value: unknown, indent: string, unit: string, eol: string, outermost = true): string {
  const short = onOneLine(value);
  if (typeof value !== "object" || value === null || short === "{}" || short === "[]") return short;
  if (!(outermost && indent === "") && short.length <= lineLength) return short;
  const inner = indent + unit;
  const lines = Array.isArray(value)
    ? value.map((item) => print(item, inner, unit, eol, false))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${print(item, inner, unit, eol, false)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}${eol}${lines.map((line) => inner + line).join(`,${eol}`)}${eol}${indent}${close}`;
}

function onOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${onOneLine(item)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

const space = /(?:[ \t\r\n]|\/\/[^\r\n]*|\/\*[\s\S]*?\*\/)*/y;

function skip(text: string, from: number): number {
  space.lastIndex = from;
  space.test(text);
  return space.lastIndex;
}

function read(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const root = treeOf(text, errors);
  const at = errors[0]?.offset;
  if (at === undefined) return root && nodeOf(root);
  throw new SettingsFault(
    at >= text.length ? "it ends unexpectedly" : "unexpected text that is not JSON",
    lineAt(text, at),
  );
}

function treeOf(text: string, errors: ParseError[]): JsoncNode | undefined {
  try {
    return parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  } catch (thrown) {
    if (thrown instanceof RangeError) throw tooDeep(); // the parser calls itself for each level
    throw thrown;
  }
}

function nodeOf({ type, offset: start, length, value, children = [] }: JsoncNode, depth = 0): Node {
  if (depth > maxDepth) throw tooDeep();
  const end = start + length;
  if (type === "array") {
    const items = children.map((item): Member => ({ start: item.offset, node: nodeOf(item, depth + 1) }));
    return { start, end, value: items.map(({ node }) => node.value), members: items };
  }
  if (type !== "object") return { start, end, value, members: [] };
  const members = children.map(({ offset, children: [name, inner] = [] }) => {
    return { name: name!.value as string, start: offset, node: nodeOf(inner!, depth + 1) };
  });
  return { start, end, value: Object.fromEntries(members.map(({ name, node }) => [name, node.value])), members };
}

/** Levels. Real settings are less deep. */
const maxDepth = 100;
const tooDeep = () => new SettingsFault("it is nested too deep");
