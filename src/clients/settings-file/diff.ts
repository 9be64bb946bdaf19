/** The differences between two texts, line by line. `diff` (npm) finds them. */
import { structuredPatch } from "diff";

/** Lines of context around a change. */
const context = 3;

/** Changed lines. With more of them than this, the texts are taken as entirely different, because the search grows with their square. */
const maxEditLength = 4000;

/** The changed lines with their context, as `diff -u` prints them; no lines for two equal texts. */
export function unifiedDiff(before: string, after: string, name: string): string[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const hunks = structuredPatch(name, name, ended(old), ended(fresh), "", "", { context, maxEditLength })?.hunks ?? [
    {
      oldStart: 1,
      oldLines: old.length,
      newStart: 1,
      newLines: fresh.length,
      lines: [...old.map((line) => `-${line}`), ...fresh.map((line) => `+${line}`)],
    },
  ];
  const shown = hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`,
    ...lines,
  ]);
  return shown.length === 0 ? [] : [`--- ${before === "" ? "(no file)" : name}`, `+++ ${name}`, ...shown];
}

/** An empty range is named by the line before it. */
const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`;

const linesOf = (text: string) => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/));
const ended = (lines: string[]) => lines.map((line) => `${line}\n`).join("");
