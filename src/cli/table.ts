import { printable } from "../logger";

/** Rows as aligned lines; what stands in the last column may be of any length. A cell is one line, whatever is in it. */
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
