/**
 * Before each file: a row of `test.each` or `describe.each` with too few cells is an error. Bun would hand its test the
 * callback `done` in the first cell that is missing, and wait until it is called.
 */
import { describe, test } from "bun:test";

type Add = (title: string, work: (...cells: never[]) => unknown, ...options: unknown[]) => void;

for (const tests of [test, describe] as { each: (rows: readonly unknown[]) => Add }[]) {
  const each = tests.each.bind(tests);
  tests.each = (rows) => {
    const add = each(rows);
    return (title, work, ...options) => {
      const short = rows.find((row) => (Array.isArray(row) ? row.length : 1) < work.length);
      if (short !== undefined) throw new Error(`Of "${title}" the row ${JSON.stringify(short)} has too few cells.`);
      add(title, work, ...options);
    };
  };
}
