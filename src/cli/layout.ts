/** Lays out what is printed, so that it fits the terminal and no word is split. Without a terminal, lines have any length. */
import { styledOnly } from "./terminal";

/** Between two columns of a table. */
const gap = "  ";

/** The width of the terminal; unlimited where stdout is none. */
export const columns = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY);

/** A paragraph, broken between words. */
export const wrapped = (text: string, width = columns()): string => linesIn(styledOnly(text), width).join("\n");

/**
 * Rows as aligned lines. Where they do not fit, the longest cells are broken between words; where that is not enough, each
 * row becomes a block with a line for each cell. The first row names the columns, if `heads` is true. Line breaks in a cell
 * are removed.
 */
export function table(cells: readonly (readonly string[])[], { indent = 0, heads = true } = {}): string[] {
  const rows = cells.map((row) => row.map(styledOnly));
  const widths = widthsFor(rows, columns() - indent);
  const lines = widths ? rows.flatMap((row) => alignedLines(row, widths)) : blocks(rows, columns() - indent, heads);
  return lines.map((line) => " ".repeat(indent) + line);
}

/** The width of each column; undefined if even the longest words do not fit beside each other. */
function widthsFor(rows: string[][], total: number): number[] | undefined {
  const columnCells = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ""));
  const widths = columnCells.map((each) => Math.max(...each.map((cell) => Bun.stringWidth(cell))));
  const least = columnCells.map((each) =>
    Math.max(...each.flatMap((cell) => cell.split(" ").map((word) => Bun.stringWidth(word)))),
  );
  let excess = widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1)) - total;
  while (excess > 0) {
    const spare = widths.map((width, column) => (width > least[column]! ? width : 0));
    const widest = spare.indexOf(Math.max(...spare));
    if (spare[widest] === 0 || widest < 0) return undefined;
    widths[widest]!--;
    excess--;
  }
  return widths;
}

function alignedLines(row: string[], widths: number[]): string[] {
  const parts = row.map((cell, column) => linesIn(cell, widths[column]!));
  const height = Math.max(1, ...parts.map((lines) => lines.length));
  return Array.from({ length: height }, (_, at) =>
    parts
      .map((lines, column) => {
        const line = lines[at] ?? "";
        return line + " ".repeat(Math.max(0, widths[column]! - Bun.stringWidth(line)));
      })
      .join(gap)
      .trimEnd(),
  );
}

/** A block for each row: its first cell, and under it the others with their columns' names. */
function blocks([head = [], ...rest]: string[][], total: number, heads: boolean): string[] {
  const rows = heads ? rest : [head, ...rest];
  const named = Math.max(...head.map((name) => Bun.stringWidth(name)));
  return rows.flatMap(([first = "", ...others]) => [
    ...linesIn(first, total),
    ...others.flatMap((cell, at) => {
      if (cell === "") return [];
      const name = heads ? gap + head[at + 1]!.padEnd(named) + gap : gap;
      return linesIn(cell, total - name.length).map((line, row) => (row === 0 ? name : " ".repeat(name.length)) + line);
    }),
  ]);
}

const linesIn = (text: string, width: number): string[] =>
  width === Number.POSITIVE_INFINITY
    ? [text]
    : Bun.wrapAnsi(text, Math.max(1, width), { hard: false, trim: true }).split("\n");
