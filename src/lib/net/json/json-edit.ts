/**
 * Edits the text of a JSON object and leaves every other byte as it was. Numbers keep their digits, unknown members their
 * formatting, and a large member is not serialized again because a small one changed.
 */
import { isEmpty, isObject, stringEnd } from "../../json";

/**
 * The text of an object that was changed, at whatever depth: a value that is identical in both keeps its text, so that a
 * changed name costs no other byte.
 * @param text The text from which `before` was parsed.
 */
export function editedTo(text: string, before: Holder, after: Holder): string {
  const edits: TextEdit[] = [];
  // A name with an escaped letter is found under no name.
  const isFound = !text.includes("\\u00") && findEdits(text, before, after, edits, text.lastIndexOf("}"));
  return isFound ? spliced(text, edits) : changedText(text, changesBetween(before, after));
}

/**
 * The text of the object with some top-level members set and some removed.
 * @param text A whole JSON object that `JSON.parse` accepts.
 */
export function editMembers(text: string, set: Record<string, unknown>, remove: readonly string[]): string {
  const changes: Changes = new Map(remove.map((key) => [key, null]));
  for (const key of Object.keys(set)) changes.set(key, JSON.stringify(set[key]));
  return changedText(text, changes);
}

/**
 * The text of the object without the members at some paths.
 * @param text A whole JSON object that `JSON.parse` accepts.
 * @param paths From the object to a member: names and array indexes. Missing members are ignored.
 */
export function removePaths(text: string, paths: readonly (readonly (string | number)[])[]): string {
  const whole: Changes = new Map();
  for (const path of paths) {
    let inner: Change = whole;
    for (const [at, step] of path.entries()) {
      if (!(inner instanceof Map)) break;
      const next: Change = at === path.length - 1 ? null : (inner.get(step) ?? new Map());
      inner.set(step, next);
      inner = next;
    }
  }
  return changedText(text, whole);
}

/**
 * The text of a top-level member's value; undefined if there is none.
 * @param text A whole JSON object that `JSON.parse` accepts.
 */
export function memberText(text: string, key: string): string | undefined {
  const member = readMembers(text, text.indexOf("{")).findLast((each) => each.key === key);
  return member && text.slice(member.valueStart, member.end);
}

/** A piece of the text to be replaced. */
export interface TextEdit {
  start: number;
  end: number;
  text: string;
}

/** @param edits In the order of the text. */
export function spliced(text: string, edits: readonly TextEdit[]): string {
  let at = 0;
  let edited = "";
  for (const { start, end, text: replaced } of edits) {
    edited += text.slice(at, start) + replaced;
    at = end;
  }
  return edited + text.slice(at);
}

/** An object, or an array by its indexes. */
type Holder = Readonly<Record<string, unknown>>;

const ownOf = (holder: Holder, key: string): unknown => (Object.hasOwn(holder, key) ? holder[key] : undefined);

/** Two objects, or two arrays of one length: what changed is inside them. */
const areHolders = (one: unknown, other: unknown): boolean =>
  Array.isArray(one) ? Array.isArray(other) && one.length === other.length : isObject(one) && isObject(other);

// ── Edits that a search finds ──

/** More of them are found faster by one reading. */
const mostSearched = 16;

/**
 * Adds the edits of members whose names are nowhere else in the text: most edits are of one name, and cost no reading.
 * @param end The place of the object's closing brace, if members may be added there.
 * @returns False where the text has to be read.
 */
function findEdits(text: string, before: Holder, after: Holder, edits: TextEdit[], end?: number): boolean {
  // Elements have no names, and to go through an array by its keys takes many times as long.
  if (Array.isArray(before)) return findInElements(text, before, after, edits);
  for (const key in before) {
    const was = before[key];
    if (after[key] === was) continue;
    const value = ownOf(after, key);
    if (areHolders(was, value)) {
      if (!findEdits(text, was as Holder, value as Holder, edits)) return false;
      continue;
    }
    const edit = findEdit(text, key, value);
    if (!edit || edit.start < (edits.at(-1)?.end ?? 0) || edits.length === mostSearched) return false;
    edits.push(edit);
  }
  for (const key in after) {
    const value = after[key];
    if (Object.hasOwn(before, key) || value === undefined) continue;
    if (end === undefined || isEmpty(before)) return false;
    edits.push({ start: end, end, text: `,${JSON.stringify(key)}:${JSON.stringify(value)}` });
  }
  return true;
}

function findInElements(text: string, before: readonly unknown[], after: Holder, edits: TextEdit[]): boolean {
  for (let at = 0; at < before.length; at++) {
    const was = before[at];
    const value = after[at];
    if (was === value) continue;
    if (!areHolders(was, value) || !findEdits(text, was as Holder, value as Holder, edits)) return false;
  }
  return true;
}

/** @param value Undefined if it goes. */
function findEdit(text: string, key: string, value: unknown): TextEdit | undefined {
  if (!/^[a-z_]\w*$/i.test(key)) return undefined;
  const name = `"${key}"`;
  const start = text.indexOf(name);
  const nameEnd = start + name.length;
  if (start === -1 || text.includes(name, nameEnd)) return undefined;
  const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1);
  const end = valueEnd(text, valueStart);
  if (value !== undefined) return { start: valueStart, end, text: JSON.stringify(value) };
  if (text[start - 1] === ",") return { start: start - 1, end, text: "" };
  return text[start - 1] === "{" && text[end] === "," ? { start, end: end + 1, text: "" } : undefined;
}

// ── Edits of a text that is read ──

/** What becomes of a member: its new JSON, null if it goes, or what becomes of its own members. */
type Change = string | null | Changes;
type Changes = Map<string | number, Change>;

function changesBetween(before: Holder, after: Holder): Changes {
  const changes: Changes = new Map();
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const was = ownOf(before, key);
    const value = ownOf(after, key);
    if (value === was) continue;
    const place = Array.isArray(before) ? Number(key) : key;
    if (areHolders(was, value)) changes.set(place, changesBetween(was as Holder, value as Holder));
    else changes.set(place, value === undefined ? null : JSON.stringify(value));
  }
  return changes;
}

function changedText(text: string, changes: Changes): string {
  const edits: TextEdit[] = [];
  readEdits(text, skipSpace(text, 0), changes, edits);
  return spliced(text, edits);
}

/** Adds the edits of an object or an array. @param start The position of its opening brace. */
function readEdits(text: string, start: number, changes: Changes, edits: TextEdit[]): void {
  const members = readMembers(text, start);
  // An earlier one of the same name goes: there are parsers that take the first.
  const last = new Map(members.map((member) => [member.key, member]));
  /** Up to here the text is kept, or edited; after it come only members that go. */
  let kept = start + 1;
  let isFirst = true;
  let isGap = false;
  for (const member of members) {
    const change = changes.get(member.key);
    if (change === null || (change !== undefined && last.get(member.key) !== member)) {
      isGap = true;
      continue;
    }
    if (isGap) edits.push({ start: kept, end: member.start, text: isFirst ? "" : "," });
    if (typeof change === "string") edits.push({ start: member.valueStart, end: member.end, text: change });
    else if (change) readEdits(text, member.valueStart, change, edits);
    kept = member.end;
    isFirst = false;
    isGap = false;
  }
  const added: string[] = [];
  for (const [key, json] of changes)
    if (typeof json === "string" && !last.has(key)) added.push(`${JSON.stringify(key)}:${json}`);
  const end = isGap ? members.at(-1)!.end : kept;
  if (end > kept || added.length > 0)
    edits.push({ start: kept, end, text: (isFirst || added.length === 0 ? "" : ",") + added.join(",") });
}

interface Member {
  /** An element's is its index. */
  key: string | number;
  /** The position of the key's opening quote, or of the element. */
  start: number;
  valueStart: number;
  end: number;
}

/** The members of an object or the elements of an array. @param start The position of the opening brace. */
function readMembers(text: string, start: number): Member[] {
  const isObject = text[start] === "{";
  const members: Member[] = [];
  if (!isObject && text[start] !== "[") return members;
  let at = skipSpace(text, start + 1);
  while (at < text.length && text[at] !== "}" && text[at] !== "]") {
    const keyEnd = isObject ? stringEnd(text, at) : at;
    const valueStart = isObject ? skipSpace(text, skipSpace(text, keyEnd) + 1) : at;
    const end = valueEnd(text, valueStart);
    const key = isObject ? keyIn(text.slice(at, keyEnd)) : members.length;
    members.push({ key, start: at, valueStart, end });
    const next = skipSpace(text, end);
    at = text[next] === "," ? skipSpace(text, next + 1) : next;
  }
  return members;
}

/** @param literal With its quotes. */
const keyIn = (literal: string): string =>
  literal.includes("\\") ? (JSON.parse(literal) as string) : literal.slice(1, -1);

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
