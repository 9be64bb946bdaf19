/**
 * An error's words without what they repeat of the request: for the history and the log, which hold no content. The
 * client, whose words they are, gets them whole. Used when something failed, never for a request that went well.
 */
import type { JsonObject } from "../dialects/hub/conversation";
import { plainWords } from "../dialects/plain-words";

/** Characters of an error's message that are looked at; the rest is cut. */
const max = 1000;
/** Plain words in a row that make a repetition when a request has the very same ones; fewer between quotes. */
const longRun = 5;
const quotedRun = 2;

/**
 * The text with each run of the request's own string values as `…`, whether quoted, cut or escaped. Names of fields,
 * numbers of up to eight digits, and words of which any error is made (`plainWords`) stay, unless they stand in a run.
 * @param request The request's body.
 * @param names What is kept besides: ids of models.
 */
export function redact(text: string, request: JsonObject, names: readonly string[]): string {
  const shown = decode(text).slice(0, max);
  const words = wordsOf(shown);
  if (words.length === 0) return shown;
  const said = contentOf(request);
  const kept = new Set([...said.keys, ...names.flatMap((name) => wordsOf(name).map(({ word }) => word))]);
  const isPlain = (word: string) => plainWords.has(word) || kept.has(word) || /^(?:\d{1,8}|[a-z_]{1,2})$/.test(word);
  const holds = (from: number, to: number) =>
    said.text.includes(
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
      // Scripts without spaces: the request's words may stand among others.
      pieces.push(shown.slice(written, words[at]!.start), withoutPieces(words[at]!, shown, said.text));
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

/** Whether quotes stand around the run, with nothing but it between them. */
function isQuoted(text: string, run: Word[]): boolean {
  return /["'`“‘«]$/.test(text.slice(0, run[0]!.start)) && /^[.,;:!?…]*["'`”’»]/.test(text.slice(run.at(-1)!.end));
}

/** A word of a script without spaces, without what of it the request holds. */
function withoutPieces({ word, start, end }: Word, text: string, said: string): string {
  if (!/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(word))
    return text.slice(start, end);
  let left = "";
  for (let at = 0; at < word.length; ) {
    let to = at;
    while (to < word.length && said.includes(word.slice(at, to + 1))) to++;
    left += to - at >= 2 ? "…" : word.slice(at, Math.max(to, at + 1));
    at = Math.max(to, at + 1);
  }
  return left;
}

/** As it was before it was put into JSON, a page or an address; what stood for white space is white space. */
function decode(text: string): string {
  return text
    .slice(0, 4 * max)
    .replace(/\\u([0-9a-f]{4})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replace(/\\[nrt]|%[0-9a-f]{2}|&(?:#\d+|#x[0-9a-f]+|[a-z]+);/gi, " ");
}

/** Characters of a value without spaces, a picture for example, that are looked at on either side. */
const maxOfData = 4000;

/** The string values of a request, as words with one space between them; and the words of its members' names. */
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

const isData = (value: string) => value.length > 2 * maxOfData && !/\s/.test(value.slice(0, maxOfData));
const ends = (value: string) => `${value.slice(0, maxOfData)} ${value.slice(-maxOfData)}`;
