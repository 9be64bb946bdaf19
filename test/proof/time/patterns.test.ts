/**
 * Property: a promise in time: a pattern of src/ takes time in proportion to the text, whatever stands in it. The texts come
 * from the pattern itself: its own words, characters and beginnings again and again, before something that fits nowhere.
 * The demo reads its own requests, and a release its own documents, so their patterns are not asked.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { workOf } from "../../support/held";

const source = join(import.meta.dir, "../../../src");
const ownTexts = /^(?:demo|deploy)\//;
/** What stands before a pattern in code, and the pattern: a character of a class may be a slash. */
const literal =
  /(?<=(?:[(=,:[!&|?;{}]|=>|\breturn|^)\s*)\/((?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+)\/([dgimsuvy]*)(?![\w/])/gm;

interface Pattern {
  at: string;
  pattern: RegExp;
}

async function patterns(): Promise<Pattern[]> {
  const found: Pattern[] = [];
  for (const file of [...new Bun.Glob("**/*.{ts,tsx}").scanSync(source)].sort()) {
    if (ownTexts.test(file)) continue;
    const lines = (await Bun.file(join(source, file)).text()).split("\n");
    for (const [at, line] of lines.entries()) {
      if (/^\s*(?:\/\/|\*|\/\*)/.test(line)) continue;
      for (const [, text = "", flags = ""] of line.matchAll(literal)) {
        const pattern = patternOf(text, flags);
        if (pattern) found.push({ at: `${file}:${at + 1} ${text}`, pattern });
      }
    }
  }
  return found;
}

/** None for a division or a path that only looks like one. */
function patternOf(text: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(text, flags.replace(/[gy]/g, ""));
  } catch {
    return undefined;
  }
}

const usual = [...` \t\na1./:-_][("\\=~`, "a:", "a.", "1.", "<a"];

/** Parts of texts that keep a pattern busy, beyond the usual ones: words and characters that stand in it. */
function partsFor({ source: text }: RegExp): string[] {
  const plain = text.replace(/\\[bBdDwWsSpPu](?:\{[^}]*\})?|\(\?(?:[:=!]|<[=!]|<\w+>)|[\^$+*?{}()|]/g, "\u0001");
  const words = plain
    .replace(/\[[^\]]*\]/g, "\u0001")
    .replace(/\\(.)/g, "$1")
    .split("\u0001");
  return [...new Set([...usual, ...words.filter((word) => word.length > 0 && word.length < 60)])];
}

const endings = ["", "\u0000", "a\u0000", "!\n", "\\", "\u0100"];
/** Characters of a text, and the most milliseconds for it: in the short one what grows with a third power shows already. */
const sizes = [
  [1_000, 10],
  [24_000, 20],
] as const;

/** Whether the pattern works for longer than this, in ms, each time that it is asked. */
function isSlow(pattern: RegExp, text: string, most: number): boolean {
  const began = performance.now();
  pattern.test(text);
  if (performance.now() - began < most) return false;
  return workOf(() => pattern.test(text)) >= most;
}

function* textsFor(pattern: RegExp): Generator<(length: number) => string> {
  const parts = partsFor(pattern);
  const words = parts.filter((part) => part.length > 2);
  for (const beginning of ["", "x", ...words, ...words.map((word) => `${word} `)])
    for (const part of parts)
      for (const ending of endings) yield (length) => beginning + part.repeat(length / part.length) + ending;
}

test("a long text takes no pattern longer than its share", async () => {
  const all = await patterns();
  expect(all.length).toBeGreaterThan(350);
  const slow: string[] = [];
  for (const { at, pattern } of all)
    for (const text of textsFor(pattern)) {
      if (!sizes.some(([length, most]) => isSlow(pattern, text(length), most))) continue;
      slow.push(`${at} on ${JSON.stringify(text(60))}`);
      break;
    }
  expect(slow).toEqual([]);
});
