/** Reads JSON from outside, and keeps its numbers as they were written. */
import { ProxyError } from "./errors";

/** Whether a value is a JSON object: not null, an array or a number. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof SourceNumber);
}

/** The entry of a table for a key from outside. Inherited names such as `constructor` are not entries. */
export function entryOf<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** The parsed text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether two values have the same JSON text, including the digits of their numbers. */
export const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The same for one value and many others: its text, which may be a long one, is made once. */
export function sameJsonAs(one: unknown): (other: unknown) => boolean {
  let text: string | undefined;
  return (other) => {
    text ??= JSON.stringify(one);
    return text === JSON.stringify(other);
  };
}

// ── Numbers with their source text ──

/**
 * A number that JavaScript would write differently: 12345678901234567890, 1e3, 1.0, -0. `JSON.stringify` writes its source
 * text again; {@link numberIn} returns its value.
 */
export class SourceNumber {
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

/** The value of a number, with or without its source text; undefined for anything else. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return value instanceof SourceNumber ? value.valueOf() : undefined;
}

/** An amount that is not negative, as a number or as a decimal text such as `"12.5"`; undefined for anything else. */
export function decimalIn(value: unknown): number | undefined {
  const isText = typeof value === "string" && /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(value.trim());
  const amount = isText ? Number(value) : numberIn(value);
  return amount !== undefined && Number.isFinite(amount) && amount >= 0 ? amount : undefined;
}

/**
 * Parses JSON that will be written again. A number that JavaScript would write differently becomes a {@link SourceNumber}.
 * @returns Undefined if the text is not JSON.
 */
export function parseWithSource(text: string): unknown {
  return hasRewrittenNumber(text) ? parseReviving(text, keepSource) : parseJson(text);
}

function parseReviving(text: string, reviver: typeof keepSource): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

const keepSource = (_key: string, value: unknown, { source }: { source?: string }): unknown =>
  typeof value === "number" && source !== undefined && String(value) !== source ? new SourceNumber(source) : value;

/** Matches every number that JavaScript would write differently, and some texts in strings. */
const mayBeRewritten = /(?:^|[[\s:,])-?(?:0[.eE]|[1-9]\d*[.eE]|\d{16}|0(?<=-0))/;

/** Characters of most replies and events. A longer text has long strings, which are skipped sooner than a pattern goes over them. */
const shortText = 2 * 1024;

/** Whether JavaScript would write some number of this JSON differently. Strings are skipped with `indexOf`. */
function hasRewrittenNumber(text: string): boolean {
  if (text.length < shortText && !mayBeRewritten.test(text)) return false;
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
 * The position after the closing quote of a JSON string; the end of the text if there is none.
 * @param start The position of the opening quote.
 */
export function stringEnd(text: string, start: number): number {
  let found = text.indexOf('"', start + 1);
  while (found !== -1 && isEscaped(text, found)) found = text.indexOf('"', found + 1);
  return found === -1 ? text.length : found + 1;
}

/** Whether the character at `at` is escaped: an odd number of backslashes precedes it. */
function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === backslash) before--;
  return (at - before) % 2 === 1;
}

/**
 * The error does not quote the text: it may be the page of a portal.
 * @param what The subject of the sentence: `GitHub Copilot's answer`.
 */
export const notJson = (what: string): ProxyError =>
  new ProxyError("upstream", `${what} is not JSON: is a proxy or a portal in the way?`);

export function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}
