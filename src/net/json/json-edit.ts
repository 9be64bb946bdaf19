/**
 * Edits the text of a JSON object and leaves every other byte as it was. Numbers keep their digits, unknown members their
 * formatting, and a large member is not serialized again because a small one changed.
 */
import { isEmpty, isObject, stringEnd } from "../../json";

/**
 * The text of the object with some top-level members set and some removed.
 * @param text A whole JSON object that `JSON.parse` accepts.
 */
export function editMembers(text: string, set: Record<string, unknown>, remove: readonly string[]): string {
  const members = readMembers(text);
  const removed = new Set(remove);
  const kept = members.filter((member) => !removed.has(member.key));
  const last = new Map(kept.map((member) => [member.key, member]));

  const pieces: string[] = [];
  for (const member of kept) {
    if (!Object.hasOwn(set, member.key)) pieces.push(text.slice(member.start, member.end));
    // An earlier one of the same name goes: there are parsers that take the first.
    else if (last.get(member.key) === member)
      pieces.push(text.slice(member.start, member.valueStart) + JSON.stringify(set[member.key]));
  }
  for (const [key, value] of Object.entries(set))
    if (!last.has(key)) pieces.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${pieces.join(",")}}`;
}

/**
 * The text of an object that was changed, at whatever depth: a value that is identical in both keeps its text, so that a
 * changed name costs no other byte.
 * @param text The text from which `before` was parsed.
 */
export function editedTo(text: string, before: Record<string, unknown>, after: Record<string, unknown>): string {
  const found = hasMembersOf(before, after) ? withMembers(text, before, after) : undefined;
  if (found !== undefined) return found;
  const edits: Edit[] = [];
  editObject(text, text.indexOf("{"), before, after, edits);
  return spliced(text, edits);
}

function hasMembersOf(before: object, after: object): boolean {
  for (const key in before) if (!Object.hasOwn(after, key)) return false;
  return true;
}

/**
 * The text with these members set, where a search finds them: at the top, no objects, and nothing else in the text is called
 * like them. A model's name in each event of a stream costs no reading of the event.
 * @param text The text from which `before` was parsed.
 * @returns Undefined where the text has to be read.
 */
export function withMembers(
  text: string,
  before: Record<string, unknown>,
  set: Record<string, unknown>,
): string | undefined {
  const end = text.lastIndexOf("}");
  // A name with an escaped letter is found under no name.
  if (isBlank(text.charCodeAt(end - 1)) || isEmpty(before) || text.includes("\\u00")) return undefined;
  const edits: Edit[] = [];
  let added = "";
  for (const key in set) {
    const was = before[key];
    const value = set[key];
    if (was === value) continue;
    if (!Object.hasOwn(before, key)) {
      const json = JSON.stringify(value);
      if (json !== undefined) added += `,${JSON.stringify(key)}:${json}`;
      continue;
    }
    if (typeof was === "object" && was !== null) return undefined;
    const name = `"${key}"`;
    const at = text.indexOf(name);
    const start = at + name.length + 1;
    const written = JSON.stringify(was);
    const isOnly = at !== -1 && text.indexOf(name, start) === -1;
    if (!isOnly || text[start - 1] !== ":" || !text.startsWith(written, start)) return undefined;
    edits.push({ start, end: start + written.length, text: JSON.stringify(value) });
  }
  edits.sort((one, other) => one.start - other.start);
  if (added !== "") edits.push({ start: end, end, text: added });
  return spliced(text, edits);
}

const isBlank = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9;

/** Adds the edits that make one object of the text the other one. @param start The position of its opening brace. */
function editObject(
  text: string,
  start: number,
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  edits: Edit[],
): void {
  const members = readMembers(text, start);
  // An earlier one of the same name is what no parser of ours has read.
  const last = members.length > countOf(before) ? new Map(members.map((member) => [member.key, member])) : undefined;
  /** Up to here the text is kept, or edited; after it come only members that are removed. */
  let kept = start + 1;
  let isFirst = true;
  let isGap = false;
  for (const member of members) {
    const { key } = member;
    if (!Object.hasOwn(after, key)) {
      isGap = true;
      continue;
    }
    if (isGap) edits.push({ start: kept, end: member.start, text: isFirst ? "" : "," });
    if (after[key] !== before[key] && (!last || last.get(key) === member))
      editValue(text, member.valueStart, member.end, before[key], after[key], edits);
    kept = member.end;
    isFirst = false;
    isGap = false;
  }
  let added = "";
  for (const key of Object.keys(after)) {
    if (Object.hasOwn(before, key)) continue;
    const value = JSON.stringify(after[key]);
    if (value === undefined) continue;
    added += `${isFirst ? "" : ","}${JSON.stringify(key)}:${value}`;
    isFirst = false;
  }
  if (isGap || added !== "") edits.push({ start: kept, end: isGap ? members.at(-1)!.end : kept, text: added });
}

function editValue(text: string, start: number, end: number, before: unknown, after: unknown, edits: Edit[]): void {
  if (after === before) return;
  if (isObject(before) && isObject(after)) editObject(text, start, before, after, edits);
  else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const { key, start: from, end: to } of readElements(text, start))
      editValue(text, from, to, before[key], after[key], edits);
  } else edits.push({ start, end, text: JSON.stringify(after) });
}

function countOf(object: object): number {
  let count = 0;
  for (const key in object) if (Object.hasOwn(object, key)) count++;
  return count;
}

interface Edit {
  start: number;
  end: number;
  text: string;
}

/** The text with some pieces of it replaced, which are in its order. */
function spliced(text: string, edits: readonly Edit[]): string {
  let at = 0;
  let edited = "";
  for (const { start, end, text: replaced } of edits) {
    edited += text.slice(at, start) + replaced;
    at = end;
  }
  return edited + text.slice(at);
}

/**
 * The text of a top-level member's value; undefined if there is none.
 * @param text A whole JSON object that `JSON.parse` accepts.
 */
export function memberText(text: string, key: string): string | undefined {
  const member = readMembers(text).findLast((each) => each.key === key);
  return member && text.slice(member.valueStart, member.end);
}

interface Member {
  key: string;
  /** The position of the key's opening quote. */
  start: number;
  valueStart: number;
  end: number;
}

/** @param start The position of the opening brace. */
function readMembers(text: string, start = text.indexOf("{")): Member[] {
  const members: Member[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] === '"') {
    const keyEnd = stringEnd(text, at);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, valueStart);
    members.push({ key: keyIn(text.slice(at, keyEnd)), start: at, valueStart, end });
    at = skipSpace(text, skipSpace(text, end) + 1);
  }
  return members;
}

/** @param literal With its quotes. */
const keyIn = (literal: string): string =>
  literal.includes("\\") ? (JSON.parse(literal) as string) : literal.slice(1, -1);

/** @param start The position of the opening bracket. */
function readElements(text: string, start: number): (Omit<Member, "key"> & { key: number })[] {
  const elements: (Omit<Member, "key"> & { key: number })[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] !== "]") {
    const end = valueEnd(text, at);
    elements.push({ key: elements.length, start: at, valueStart: at, end });
    const next = skipSpace(text, end);
    at = text[next] === "," ? skipSpace(text, next + 1) : next;
  }
  return elements;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

function valueEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 34) {
      at = stringEnd(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (code === 123 || code === 91) depth++;
    else if (code === 125 || code === 93) {
      if (depth === 0) return at; // a number or word that ends with the object around it
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (code === 44 || code <= 32)) return at;
  }
  return text.length;
}

/**
 * The text of the object without the members at some paths, every other member as it was written.
 * @param text A whole JSON object that `JSON.parse` accepts.
 * @param paths From the object to a member: names and array indexes. Missing members are ignored.
 */
export function removePaths(text: string, paths: readonly (readonly (string | number)[])[]): string {
  if (paths.length === 0) return text;
  const whole: Removal = new Map();
  for (const path of paths) {
    let inner: Removal | "whole" = whole;
    for (const [at, step] of path.entries()) {
      if (inner === "whole") break;
      const next: Removal | "whole" = at === path.length - 1 ? "whole" : (inner.get(step) ?? new Map());
      inner.set(step, next);
      inner = next;
    }
  }
  return withoutRemoved(text, skipSpace(text, 0), whole);
}

type Removal = Map<string | number, Removal | "whole">;

/** The text of the value at `start`, without the members to be removed. */
function withoutRemoved(text: string, start: number, removal: Removal): string {
  const [open, close] = text[start] === "{" ? ["{", "}"] : ["[", "]"];
  if (text[start] !== open) return text.slice(start, valueEnd(text, start));
  const pieces: string[] = [];
  for (const { key, start: from, valueStart, end } of open === "{"
    ? readMembers(text, start)
    : readElements(text, start)) {
    const inner = removal.get(key);
    if (inner === "whole") continue;
    pieces.push(inner ? text.slice(from, valueStart) + withoutRemoved(text, valueStart, inner) : text.slice(from, end));
  }
  return open + pieces.join(",") + close;
}
