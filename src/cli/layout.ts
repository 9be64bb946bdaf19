/** Lays out what is printed, so that it fits the terminal and no word is split. Without a terminal, lines have any length. */
import { broken, styledOnly } from "./terminal";

/** Between two columns of a table. */
const gap = "  ";

/** The width of the terminal; unlimited where stdout is none. */
export const columns = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY);

/** A paragraph, broken between words. @param indent Spaces before each line. */
export const wrapped = (text: string, indent = 0): string =>
  linesIn(styledOnly(text), columns() - indent)
    .map((line) => " ".repeat(indent) + line)
    .join("\n");

interface TableOptions {
  /** Spaces before each line. */
  indent?: number;
  /** The first row names the columns. */
  heads?: boolean;
  /** Names of columns that are left out where there is no room, in this order. */
  spare?: readonly string[];
}

/**
 * Rows as aligned lines. Where they do not fit, spare columns are left out, and then the longest cells are broken between
 * words; where that is not enough, each row becomes a block with a line for each cell. Line breaks in a cell are removed.
 */
export const table = (cells: readonly (readonly string[])[], options: TableOptions = {}): string[] =>
  tableRows(cells, options).flat();

/** The same, with the lines of each row by themselves. */
export function tableRows(
  cells: readonly (readonly string[])[],
  { indent = 0, heads = true, spare = [] }: TableOptions = {},
): string[][] {
  const total = columns() - indent;
  const rows = withoutSpare(
    cells.map((row) => row.map(styledOnly)),
    spare,
    total,
  );
  const widths = widthsFor(rows, total);
  const lines = widths ? rows.map((row) => alignedLines(row, widths)) : blocks(rows, total, heads);
  return lines.map((row) => row.map((line) => " ".repeat(indent) + line));
}

function withoutSpare(rows: string[][], spare: readonly string[], total: number): string[][] {
  const [name, ...others] = spare;
  if (name === undefined || widthOf(naturalWidths(rows)) <= total) return rows;
  const at = rows[0]?.indexOf(name) ?? -1;
  const left = at < 0 ? rows : rows.map((row) => row.toSpliced(at, 1));
  return withoutSpare(left, others, total);
}

const naturalWidths = (rows: string[][]) =>
  (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? ""))));

const widthOf = (widths: number[]) => widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1));

/** The width of each column; undefined if even the longest words do not fit beside each other. */
function widthsFor(rows: string[][], total: number): number[] | undefined {
  const widths = naturalWidths(rows);
  const least = widths.map((_, column) =>
    Math.max(...rows.flatMap((row) => (row[column] ?? "").split(" ").map((word) => Bun.stringWidth(word)))),
  );
  for (let excess = widthOf(widths) - total; excess > 0; excess--) {
    const shrinkable = widths.map((width, column) => (width > least[column]! ? width : 0));
    const widest = Math.max(...shrinkable);
    if (widest === 0) return undefined;
    widths[shrinkable.indexOf(widest)]!--;
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

/** A block for each row: its first cell, and under it the others with the names of their columns. */
function blocks([head = [], ...rest]: string[][], total: number, heads: boolean): string[][] {
  const named = heads ? Math.max(...head.map((name) => Bun.stringWidth(name))) : 0;
  const rows = heads ? rest : [head, ...rest];
  const made = rows.map(([first = "", ...others]) => [
    ...linesIn(first, total),
    ...others.flatMap((cell, at) => {
      if (cell === "") return [];
      const name = gap + (heads ? head[at + 1]!.padEnd(named) + gap : "");
      return linesIn(cell, total - name.length).map((line, row) => (row === 0 ? name : " ".repeat(name.length)) + line);
    }),
  ]);
  return heads ? [[], ...made] : made;
}

const linesIn = (text: string, width: number): string[] => broken(text, width).split("\n");
