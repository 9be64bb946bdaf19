/**
 * Large JSON without its long texts. A prompt of megabytes consists of a few thousand texts that hardly anything reads.
 * They stay in the body's bytes: a small JSON, the skeleton, has the beginning of each and a mark in place of the rest.
 * The skeleton is parsed, examined and changed as the whole JSON would be. Then the rest of each text is put back as the
 * client wrote it.
 *
 * A mark is `\u0010<nonce><start>_<end>;`, the place of the rest in the bytes, and only this process knows the nonce. JSON
 * that contains U+0010 has no skeleton, so no client's text looks like a mark.
 */

declare const isLong: unique symbol;

/**
 * A text of a request. In a large request it may be its beginning with a mark for the rest, so the compiler lets nobody
 * read it but {@link beginningOfLong}, {@link bytesOf} and {@link Skeleton.whole}. As JSON it is written like any other string.
 */
export type LongText = string | { readonly [isLong]: true };

/** Reads a text to its end. @param most The characters that are wanted: hardly more is read. */
export type ReadText = (text: LongText, most?: number) => string;

/** Reads the texts of a request that has no marks. */
export const readUnmarked: ReadText = (text, most) => (text as string).slice(0, most);

/** The text, up to the mark if it has one, and of it at most so many characters. */
export function beginningOfLong(text: LongText, most = Number.POSITIVE_INFINITY): string {
  const value = (text as string).slice(0, most + markStart.length);
  const mark = value.indexOf(markStart);
  return value.slice(0, mark === -1 ? most : Math.min(mark, most));
}

/** The bytes of a text; of what its mark stands for those in the JSON, which are as many or more. */
export function bytesOf(text: LongText): number {
  const value = text as string;
  let bytes = Buffer.byteLength(value);
  for (const [mark, start, end] of value.includes(markStart) ? value.matchAll(markInString) : [])
    bytes += Number(end) - Number(start) - Buffer.byteLength(mark);
  return bytes;
}

/** What a text is measured by. */
export interface TextMeasure {
  /** In UTF-8, about; of what a mark stands for those in the JSON. */
  bytes: number;
  /** Of 32 bits. It tells whether a text is probably the same as before. */
  hash: number;
}

/** A text is looked at in so many places, at equal distances, so that megabytes take no time. */
const samples = 16;

/**
 * Measures a text without decoding it.
 * @param to Gets the numbers: thousands of texts are measured one after the other.
 * @param json The JSON that the marks point into; undefined where there are none, because it is small. A text has the same numbers
 * in both, unless the client escapes characters that `JSON.stringify` does not.
 * @param hasAll All of it is hashed, and not only its length and samples.
 */
export function measureText(to: TextMeasure, text: LongText, json: Uint8Array | undefined, hasAll = false): void {
  const value = text as string;
  if (json !== undefined) {
    const at = value.charCodeAt(value.length - 1) === semicolon ? value.lastIndexOf(markStart) : -1;
    if (at !== -1) {
      const [start, end] = value.slice(at + markStart.length, -1).split("_");
      measureShort(to, value.slice(0, at), hasAll);
      measureRest(to, json, Number(start), Number(end), hasAll);
      return;
    }
  } else if (value.length > beginning) {
    const bytes = Buffer.from(JSON.stringify(value));
    if (bytes.length - 1 > longest) {
      const start = endOfBeginning(bytes, 1);
      measureShort(to, JSON.parse(`${textOf(bytes, 0, start)}"`), hasAll);
      measureRest(to, bytes, start, bytes.length - 1, hasAll);
      return;
    }
  }
  measureShort(to, value, hasAll);
}

const semicolon = 0x3b;
const prime = 0x01000193;

function measureShort(to: TextMeasure, value: string, hasAll: boolean): void {
  const { length } = value;
  if (hasAll) {
    to.bytes = Buffer.byteLength(value);
    to.hash = Bun.hash.xxHash32(value) | 0;
    return;
  }
  let hash = length;
  let seen = 0;
  const step = ((length / samples) | 0) + 1;
  for (let at = length - 1; at >= 0; at -= step) {
    const code = value.charCodeAt(at);
    hash = Math.imul(hash ^ code, prime);
    seen |= code;
  }
  to.bytes = seen < 128 ? length : Buffer.byteLength(value);
  to.hash = hash;
}

function measureRest(to: TextMeasure, json: Uint8Array, start: number, end: number, hasAll: boolean): void {
  const length = end - start;
  let hash = Math.imul(to.hash ^ length, prime);
  if (hasAll) hash = Bun.hash.xxHash32(json.subarray(start, end), hash >>> 0);
  else {
    const step = ((length / samples) | 0) + 1;
    for (let at = end - 1; at >= start; at -= step) hash = Math.imul(hash ^ json[at]!, prime);
  }
  to.bytes += length;
  to.hash = hash | 0;
}

/** One text after the other. A sum copies neither: a text may grow piece by piece. */
export function joinTexts(texts: readonly LongText[]): LongText {
  let joined = "";
  for (const text of texts) joined += text as string;
  return joined;
}

/** The text from a place in its beginning on. */
export const textFrom = (text: LongText, start: number): LongText => (text as string).slice(start);

export interface Skeleton {
  /** The JSON, with marks. Every other byte is as it was sent. */
  readonly text: string;
  /** A string from the parsed skeleton as the client sent it. */
  whole: ReadText;
  /** JSON that was made of the skeleton or its values, with the texts put back, also in JSON within a string: its pieces. */
  fill(json: string): (string | Uint8Array)[];
}

/** The places in a JSON value where marks may stay. An array is at the place of its elements. */
export interface MarkPlace {
  /** Whether a string at this place may stay marked. @param beginning Of the string, without the mark. */
  keeps?: (beginning: string) => boolean;
  members?: Readonly<Record<string, MarkPlace>>;
}

/** Bytes. Texts up to this length stay in the skeleton: to parse them takes no longer than to cut them out. */
const longest = 2048;
/** Bytes of a text that stay in the skeleton, so that it can be judged by its beginning. */
const beginning = 320;

const nonce = crypto.getRandomValues(Buffer.alloc(8)).toString("hex");
const markStart = `\u0010${nonce}`;
const markInJson = new RegExp(`\\\\u0010${nonce}(\\d+)_(\\d+);`, "g");
const markInString = new RegExp(`${markStart}(\\d+)_(\\d+);`, "g");

/** @param bytes JSON in UTF-8. Undefined if it has no long texts, contains U+0010, or has a string that is not valid. */
export function skeletonOf(bytes: Uint8Array): Skeleton | undefined {
  const text = withMarks(bytes);
  if (text === undefined) return undefined;
  return {
    text,
    whole: (value, most = Number.POSITIVE_INFINITY) => {
      const read = (_: string, start: string, end: string): string => {
        const to = Number(end) - Number(start) > most ? endOfBeginning(bytes, Number(start), most) : Number(end);
        return JSON.parse(`"${textOf(bytes, Number(start), to)}"`);
      };
      return readUnmarked(value).replace(markInString, read).slice(0, most);
    },
    fill(json) {
      if (json === text) return [bytes];
      const filled: (string | Uint8Array)[] = [];
      let written = 0;
      for (const { 0: mark, 1: start, 2: end, index } of json.matchAll(markInJson)) {
        const layers = layersAt(json, index);
        const cut = [Number(start), Number(end)] as const;
        filled.push(
          json.slice(written, index + 1 - 2 ** layers),
          layers === 0 ? bytes.subarray(...cut) : quoted(textOf(bytes, ...cut), layers),
        );
        written = index + mark.length;
      }
      filled.push(json.slice(written));
      return filled;
    },
  };
}

/**
 * How many strings of JSON are around the string with a mark, by the backslashes before its `u`: each layer doubles them,
 * and one is the mark's own.
 */
function layersAt(json: string, backslash: number): number {
  let first = backslash;
  while (json[first - 1] === "\\") first -= 1;
  const run = backslash + 1 - first;
  return Math.log2(run & -run);
}

/** The inside of a JSON string as it stands in so many more strings of JSON. */
function quoted(text: string, layers: number): string {
  let inside = JSON.stringify(JSON.parse(`"${text}"`)).slice(1, -1);
  for (let layer = 0; layer < layers; layer += 1) inside = JSON.stringify(inside).slice(1, -1);
  return inside;
}

/** Puts back the texts of a parsed skeleton, except at these places. The value is changed in place. */
export function fillExcept<Value>(value: Value, skeleton: Skeleton, place: MarkPlace): Value {
  const visit = (value: unknown, place: MarkPlace | undefined): unknown => {
    if (typeof value === "string") {
      // Most strings have no mark, which is the end of a text.
      const mark = value.endsWith(";") ? value.indexOf(markStart) : -1;
      return mark === -1 || place?.keeps?.(value.slice(0, mark)) ? value : skeleton.whole(value);
    }
    if (Array.isArray(value)) for (let at = 0; at < value.length; at++) value[at] = visit(value[at], place);
    else if (typeof value === "object" && value !== null) {
      const object = value as Record<string, unknown>;
      const members = place?.members;
      for (const key in object) {
        const member = object[key];
        const after = visit(member, members && Object.hasOwn(members, key) ? members[key] : undefined);
        if (after !== member) object[key] = after;
      }
    }
    return value;
  };
  return visit(value, place) as Value;
}

const textOf = (bytes: Uint8Array, start: number, end: number): string =>
  Buffer.prototype.utf8Slice.call(bytes, start, end);

// ── Strings in bytes ──

const [quote, colon, backslash, letterU] = [0x22, 0x3a, 0x5c, 0x75];

/** Not 0 for the bytes that a string's inside cannot contain as they are: control characters, `"` and `\`. */
const stops = new Uint8Array(256).fill(1, 0, 32);
for (const byte of [quote, backslash]) stops[byte] = 1;

/** Not 0 for what may follow a backslash, except `u`. */
const escapes = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) escapes[byte] = 1;

/** The value of each byte as a hexadecimal digit; NaN for other bytes. */
const hexDigits = new Float64Array(256).fill(Number.NaN);
for (const [place, byte] of Buffer.from("0123456789abcdefABCDEF").entries())
  hexDigits[byte] = place < 16 ? place : place - 6;

/** Undefined for JSON without long texts, with U+0010, or with a string that is not valid. Only strings are validated. */
function withMarks(bytes: Uint8Array): string | undefined {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== quote) continue;
    const end = closingQuote(bytes, at + 1);
    if (end === undefined) return undefined;
    if (end - at > longest && !isKey(bytes, end + 1)) {
      const start = endOfBeginning(bytes, at + 1);
      pieces.push(textOf(bytes, from, start), `\\u0010${nonce}${start}_${end};`);
      from = end;
    }
    at = end;
  }
  return from === 0 ? undefined : pieces.join("") + textOf(bytes, from, bytes.length);
}

/** @param start The first byte of a string's inside. */
function closingQuote(bytes: Uint8Array, start: number): number | undefined {
  let at = start;
  for (;;) {
    while (stops[bytes[at]!] === 0) at++;
    if (bytes[at] === quote) return at;
    const length = bytes[at] === backslash ? escapeLength(bytes, at) : 0;
    if (length === 0) return undefined;
    at += length;
  }
}

/** The bytes of the escape; 0 for one that is not valid, and for that of U+0010. */
function escapeLength(bytes: Uint8Array, at: number): number {
  if (escapes[bytes[at + 1]!] === 1) return 2;
  if (bytes[at + 1] !== letterU) return 0;
  let code = 0;
  for (let digit = at + 2; digit < at + 6; digit++) code = code * 16 + (hexDigits[bytes[digit]!] ?? Number.NaN);
  return code >= 0 && code !== 0x10 ? 6 : 0;
}

function isKey(bytes: Uint8Array, afterQuote: number): boolean {
  let at = afterQuote;
  while (bytes[at]! <= 32) at++;
  return bytes[at] === colon;
}

/** Neither in a character nor in an escape. */
function endOfBeginning(bytes: Uint8Array, start: number, length = beginning): number {
  let at = start;
  while (at < start + length) at += bytes[at] === backslash ? escapeLength(bytes, at) : 1;
  while ((bytes[at]! & 0xc0) === 0x80) at++;
  return at;
}
