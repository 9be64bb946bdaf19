/**
 * Removes from an error message what it repeats of the request, for the history and the log, which hold no content. The
 * client gets the whole message. Used for failed requests only.
 */
import { beginningOf } from "../beginning";
import type { JsonObject } from "../dialects/hub/conversation";
import { plainWords } from "../dialects/plain-words";

/** Characters of an error message that are kept; the rest is cut off. */
const maxLength = 1000;
/** This many common words in a row count as content when the request has the same run; fewer between quotes. */
const longRun = 5;
const quotedRun = 2;

/**
 * The text with `…` for each run of words from the request's string values, whether quoted, cut or escaped. Field names,
 * numbers of up to eight digits and the common words of error messages (`plainWords`) stay, unless they are in such a run.
 * @param request The request's body.
 * @param names Also kept: model ids.
 */
export function redact(text: string, request: JsonObject, names: readonly string[]): string {
  const shown = beginningOf(decode(text), maxLength);
  const words = wordsOf(shown);
  if (words.length === 0) return shown;
  const content = contentOf(request);
  const kept = new Set([...content.keys, ...names.flatMap((name) => wordsOf(name).map(({ word }) => word))]);
  const isPlain = (word: string) => plainWords.has(word) || kept.has(word) || /^(?:\d{1,8}|[a-z_]{1,2})$/.test(word);
  const holds = (from: number, to: number) =>
    content.text.includes(
      words
        .slice(from, to)
        .map(({ word }) => word)
        .join(" "),
    );

  const pieces: string[] = [];
  let written = 0;
  for (let at = 0; at < words.length; ) {
    const plain = isPlain(words[at]!.word);
    let end = at;
    while (end < words.length && holds(at, end + 1)) end++;
    const run = words.slice(at, end);
    const isContent =
      run.some(({ word }) => !isPlain(word)) ||
      run.length >= longRun ||
      (run.length >= quotedRun && isQuoted(shown, run));
    if (isContent) {
      pieces.push(shown.slice(written, run[0]!.start), "…");
      written = run.at(-1)!.end;
    } else if (!plain) {
      // In scripts without spaces one match of the pattern may contain several words.
      pieces.push(shown.slice(written, words[at]!.start), withoutPieces(words[at]!, shown, content.text));
      written = words[at]!.end;
    }
    at = isContent ? end : at + 1;
  }
  return (pieces.join("") + shown.slice(written)).replace(/…(?:[\s,;]*…)+/g, "…");
}

interface Word {
  /** In lower case. */
  word: string;
  start: number;
  end: number;
}

const wordPattern = /[\p{L}\p{M}\p{N}_]+/gu;

const wordsOf = (text: string): Word[] =>
  [...text.matchAll(wordPattern)].map(({ 0: word, index }) => ({
    word: word.toLowerCase(),
    start: index,
    end: index + word.length,
  }));

/** Whether the run is all that stands between two quotes. */
function isQuoted(text: string, run: Word[]): boolean {
  return /["'`“‘«]$/.test(text.slice(0, run[0]!.start)) && /^[.,;:!?…]*["'`”’»]/.test(text.slice(run.at(-1)!.end));
}

/** A word of a script without spaces, without the parts that the request contains. */
function withoutPieces({ word, start, end }: Word, text: string, content: string): string {
  if (!/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(word))
    return text.slice(start, end);
  let left = "";
  for (let at = 0; at < word.length; ) {
    let to = at;
    while (to < word.length && content.includes(word.slice(at, to + 1))) to++;
    left += to - at >= 2 ? "…" : word.slice(at, Math.max(to, at + 1));
    at = Math.max(to, at + 1);
  }
  return left;
}

/** Undoes the escapes of JSON, HTML and URLs; those of white space become a space. */
function decode(text: string): string {
  return text
    .slice(0, 4 * maxLength)
    .replace(/\\u([0-9a-f]{4})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replace(/\\[nrt]|%[0-9a-f]{2}|&(?:#\d+|#x[0-9a-f]+|[a-z]+);/gi, " ");
}

/** A long value without spaces, such as an image, is compared by this many characters at each end. */
const dataEnds = 4000;

/** The string values of a request, as words with one space between them; and the words in its field names. */
function contentOf(request: JsonObject): { text: string; keys: Set<string> } {
  const values: string[] = [];
  const keys = new Set<string>();
  const rest: unknown[] = Object.entries(request).flatMap(([key, value]) =>
    key === "model" ? [] : [{ [key]: value }],
  );
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value === "string") values.push(isData(value) ? ends(value) : value);
    else if (Array.isArray(value)) for (const item of value) rest.push(item);
    else if (typeof value === "object" && value !== null)
      for (const [key, member] of Object.entries(value)) {
        for (const { word } of wordsOf(key)) keys.add(word);
        rest.push(member);
      }
  }
  return {
    text: values
      .join("\n\0\n")
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}_\0]+/gu, " "),
    keys,
  };
}

const isData = (value: string) => value.length > 2 * dataEnds && !/\s/.test(value.slice(0, dataEnds));
const ends = (value: string) => `${value.slice(0, dataEnds)} ${value.slice(-dataEnds)}`;
