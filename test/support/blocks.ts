/** Files of `fixtures/` whose blocks, with an empty line between them, are played, and compared as texts. */
import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dayMs, hourMs, minuteMs } from "../../src/lib/format";
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
