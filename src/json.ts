/** Reading JSON that somebody else wrote. */
import { ProxyError } from "./errors";

/** Neither null nor an array, nor a number. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof SpeltNumber);
}

/** What a table holds under a key that came from outside: `constructor` is no entry. */
export function entryOf<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** The JSON a text is; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether two values are written alike, the digits of their numbers too. */
export const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

// ── Numbers as they were spelt ──

/**
 * A number that JavaScript would write in other digits than it was sent in: 12345678901234567890, 1e3, 1.0, -0. Written
 * again it is the text it was; {@link numberIn} tells its value.
 */
export class SpeltNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toJSON(): unknown {
    return rawJson(this.#text);
  }

  toString(): string {
    return this.#text;
  }

  valueOf(): number {
    return Number(this.#text);
  }
}

/** ECMAScript's proposal "JSON.parse source text access", which TypeScript's own declarations do not have yet. */
declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  }
}

const rawJson = (text: string): object => JSON.rawJSON(text);

/** The value of a number, in whichever digits it was sent; undefined for anything else. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return value instanceof SpeltNumber ? value.valueOf() : undefined;
}

/**
 * The JSON of a text that is to be written again: numbers keep their spelling, as {@link SpeltNumber} where JavaScript
 * has another one. Undefined when it is no JSON.
 */
export function parseSpelt(text: string): unknown {
  return hasOddNumber(text) ? parseWith(text, asSpelt) : parseJson(text);
}

function parseWith(text: string, reviver: typeof asSpelt): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

const asSpelt = (_key: string, value: unknown, { source }: { source?: string }): unknown =>
  typeof value === "number" && source !== undefined && String(value) !== source ? new SpeltNumber(source) : value;

/** What only a number may look like that JavaScript spells otherwise, were it not within a string. */
const oddAtAGlance = /(?:^|[[\s:,])-?(?:0[.eE]|[1-9]\d*[.eE]|\d{16}|0(?<=-0))/;

/** Whether some number in this JSON is spelt otherwise than JavaScript would; strings are crossed at `indexOf`'s speed. */
function hasOddNumber(text: string): boolean {
  if (!oddAtAGlance.test(text)) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at) - 1;
    else if (code === minus || isDigit(code)) {
      const end = numberEnd(text, at);
      const serialized = text.slice(at, end);
      if (String(Number(serialized)) !== serialized) return true;
      at = end - 1;
    }
  }
  return false;
}

const [quote, minus, backslash] = [34, 45, 92];

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

function numberEnd(text: string, start: number): number {
  let at = start + 1;
  while (isOfNumber(text.charCodeAt(at))) at++;
  return at;
}

/** Digits, and `.`, `e`, `E`, `+`, `-`. */
const isOfNumber = (code: number): boolean =>
  isDigit(code) || code === 46 || code === 101 || code === 69 || code === 43 || code === minus;

/**
 * Where a string of JSON ends: behind its closing quote; the text's end when it has none.
 * @param start Where its first quote stands.
 */
export function stringEnd(text: string, start: number): number {
  let found = text.indexOf('"', start + 1);
  while (found !== -1 && isEscaped(text, found)) found = text.indexOf('"', found + 1);
  return found === -1 ? text.length : found + 1;
}

/** Whether the character at `at` is escaped: an odd number of backslashes stands before it. */
export function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === backslash) before--;
  return (at - before) % 2 === 1;
}

/** The text of a JSON string's inside; undefined when it is not the inside of one. */
export function unescaped(inside: string): string | undefined {
  try {
    return JSON.parse(`"${inside}"`);
  } catch {
    return undefined;
  }
}

/**
 * What arrived is not shown: it may be a portal's page.
 * @param what For the sentence: `GitHub Copilot's answer`.
 */
export const notJson = (what: string): ProxyError =>
  new ProxyError("upstream", `${what} is not JSON: is a proxy or a portal in the way?`);
