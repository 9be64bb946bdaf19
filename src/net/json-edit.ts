/**
 * Edits of a JSON object's text that leave every other byte as it was: numbers keep their digits, unknown members their
 * spelling, and a large member is not written anew because a small one changed.
 */

/**
 * The text of the object with some top-level members set and some removed.
 * @param text A whole JSON object that `JSON.parse` accepts.
 */
export function editMembers(text: string, set: Record<string, unknown>, remove: readonly string[]): string {
  const members = readMembers(text);
  const gone = new Set(remove);
  const kept = members.filter((member) => !gone.has(member.key));
  const last = new Map(kept.map((member) => [member.key, member]));

  const pieces: string[] = [];
  for (const member of kept) {
    const replaced = Object.hasOwn(set, member.key) && last.get(member.key) === member;
    pieces.push(
      replaced
        ? text.slice(member.start, member.valueStart) + JSON.stringify(set[member.key])
        : text.slice(member.start, member.end),
    );
  }
  for (const [key, value] of Object.entries(set))
    if (!last.has(key)) pieces.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${pieces.join(",")}}`;
}

interface Member {
  key: string;
  /** Where the key's quote stands. */
  start: number;
  valueStart: number;
  end: number;
}

function readMembers(text: string): Member[] {
  const members: Member[] = [];
  let at = skipSpace(text, text.indexOf("{") + 1);
  while (text[at] === '"') {
    const keyEnd = stringEnd(text, at);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, valueStart);
    members.push({ key: JSON.parse(text.slice(at, keyEnd)) as string, start: at, valueStart, end });
    at = skipSpace(text, skipSpace(text, end) + 1);
  }
  return members;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

/** Behind the closing quote; long strings are crossed at the speed of `indexOf`. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === 92) backslashes++;
  return backslashes % 2 === 1;
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
