/**
 * Whole answers, as a file of `fixtures/` has them: under each title, in lines that begin with a bar, what came of it.
 * `UPDATE=1` writes the file anew: read the difference.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blocksIn } from "./blocks";
import { fixtures } from "./streams";

/** @param rows What has this title, and what makes the text that stands below it. */
export function testWritten(name: string, rows: readonly (readonly [title: string, () => Promise<string>])[]): void {
  const file = join(fixtures, name);
  const blocks = existsSync(file) ? blocksIn(name) : [];
  const written = new Map(blocks.map((block) => [block.split("\n")[0]!, block]));
  const made = new Map<string, string>();
  for (const [title, make] of rows)
    test(title, async () => {
      const lines = (await make()).trimEnd().split("\n");
      made.set(title, [title, ...lines.map((line) => `  | ${line}`.trimEnd())].join("\n"));
      if (!process.env.UPDATE) expect(made.get(title)).toBe(written.get(title)!);
    });
  test(`${name} has no other titles`, () => {
    if (!process.env.UPDATE) expect([...written.keys()]).toEqual(rows.map(([title]) => title));
  });
  if (process.env.UPDATE) afterAll(() => writeFileSync(file, `${[...made.values()].join("\n\n")}\n`));
}
