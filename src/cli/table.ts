/** Rows as aligned lines; what stands in the last column may be of any length. */
export function table(rows: string[][]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? "")))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, widths[column]! - Bun.stringWidth(cell))))
      .join("  ")
      .trimEnd(),
  );
}
