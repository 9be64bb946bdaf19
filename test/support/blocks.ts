/** Files of `fixtures/` whose blocks, with an empty line between them, are played, and compared as texts. */
import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dayMs, hourMs, minuteMs } from "../../src/lib/format";
import type { Json } from "./json";
import { fixtures } from "./streams";

const units: Record<string, number> = { s: 1_000, m: minuteMs, h: hourMs, d: dayMs };

/** @param time `90s`, `5m`, `2h`, `1d` */
export const milliseconds = (time: string): number => Number(time.slice(0, -1)) * units[time.at(-1)!]!;

/** The blocks of a file of `fixtures/`; the first line of each is its title. */
export const blocksIn = (name: string): string[] => readFileSync(join(fixtures, name), "utf8").trimEnd().split(/\n\n+/);

/** `<<3 x text>>` is the text three times, and may be within another one; `@@` in it is 0, 1 and 2. */
export function unfolded(text: string): string {
  const next = text.replace(/<<(\d+) x ((?:(?!<<|>>).)*)>>/g, (_, times, each) =>
    Array.from({ length: Number(times) }, (_, at) => each.replaceAll("@@", at)).join(""),
  );
  return next === text ? text : unfolded(next);
}

/** The steps of a block: a line that begins with blanks goes on with the one above it. */
export const stepsIn = (lines: readonly string[]): string[] => lines.join("\n").split(/\n(?! {2})/);

/** A step in one line. */
export const joined = (step: string): string => step.replace(/\n +/g, " ");

/** The words of a step; what is in quotes, and an object or a list at its end, as its JSON says. */
export const wordsIn = (step: string): Json[] =>
  (step.match(/"(?:[^"\\]|\\.)*"|[{[].*$|\S+/g) ?? []).map((word) => (/^["{[]/.test(word) ? JSON.parse(word) : word));

/** Characters; a text in quotes may be longer. */
const width = 160;

/** The same step, in several lines where its JSON is too long for one. */
export function wrapped(line: string): string {
  if (line.length <= width || line.startsWith("#")) return line;
  let text = "";
  for (let at = 0; at < line.length; ) {
    const end = endOf(line, at);
    if (end === undefined) return line;
    const part = line.slice(at, end);
    text += /^[[{]/.test(part) ? inLines(part, 2, text.length - text.lastIndexOf("\n")) : part;
    at = end;
  }
  return text;
}

/** Where what begins here ends: a text in quotes, an object or a list, or else a character; undefined if it has no end. */
function endOf(line: string, start: number): number | undefined {
  const first = line[start]!;
  if (first === '"') {
    const end = /"(?:[^"\\]|\\.)*"/y;
    end.lastIndex = start;
    return end.test(line) ? end.lastIndex : undefined;
  }
  if (first !== "{" && first !== "[") return start + 1;
  for (let at = start + 1; at < line.length; ) {
    if (line[at] === "}" || line[at] === "]") return at + 1;
    const end = endOf(line, at);
    if (end === undefined) return undefined;
    at = end;
  }
  return undefined;
}

/** @param column Where it begins in its line. */
function inLines(json: string, indent: number, column: number): string {
  if (column + json.length <= width) return json;
  const members: string[] = [];
  let begun = 1;
  for (let at = 1; at < json.length - 1; at = endOf(json, at)!)
    if (json[at] === ",") {
      members.push(json.slice(begun, at + 1));
      begun = at + 1;
    }
  members.push(json.slice(begun, -1));
  const lines = members.map((member) => {
    const [, name = "", value = ""] = /^\s*("(?:[^"\\]|\\.)*":)?(.*)$/s.exec(member)!;
    const comma = value.endsWith(",") ? "," : "";
    const bare = comma ? value.slice(0, -1) : value;
    const isWhole = /^[[{]/.test(bare) && endOf(bare, 0) === bare.length;
    return `${" ".repeat(indent + 2)}${name}${isWhole ? inLines(bare, indent + 2, indent + 2 + name.length) : bare}${comma}`;
  });
  return `${json[0]}\n${lines.join("\n")}\n${" ".repeat(indent)}${json.at(-1)}`;
}

/**
 * @param names Pairs of what a run has of its own, such as a port, and the word that stands for it in a file.
 * @returns The text in which those words stand; the digits of a port within a longer number are no port.
 */
export const withNames = (text: string, names: readonly (readonly [actual: string, name: string])[]): string =>
  names.reduce((all, [actual, name]) => {
    const [before, after] = [/^\d/.test(actual) ? "(?<!\\w)" : "", /\w$/.test(actual) ? "(?!\\w)" : ""];
    return all.replace(new RegExp(`${before}${RegExp.escape(actual)}${after}`, "g"), () => name);
  }, text);

/**
 * A test of each block. `UPDATE=1` writes the file anew: read the difference.
 * @param play Returns the block as it should stand there.
 */
export function testBlocks(name: string, play: (block: string) => Promise<string>, { skip = false, prefix = "" } = {}) {
  const blocks = blocksIn(name);
  const played: string[] = [];
  for (const [at, block] of blocks.entries())
    test.skipIf(skip)(`${prefix}${block.split("\n")[0]}`, async () => {
      played[at] = await play(block);
      if (!process.env.UPDATE) expect(played[at]).toBe(block);
    });
  if (process.env.UPDATE)
    afterAll(() =>
      writeFileSync(join(fixtures, name), `${blocks.map((block, at) => played[at] ?? block).join("\n\n")}\n`),
    );
}
