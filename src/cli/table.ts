import { printable } from "../logger";

/** Rows as aligned lines. The last column may have any length. Line breaks in a cell are removed. */
export function table(cells: string[][]): string[] {
  const rows = cells.map((row) => row.map(printable));
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? "")))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, widths[column]! - Bun.stringWidth(cell))))
      .join("  ")
      .trimEnd(),
  );
}
