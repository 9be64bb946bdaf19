/** What the tests of this room share: the history of a folder, which each test has anew. */
import { afterEach, beforeEach, expect } from "bun:test";
import { join } from "node:path";
import { type Entry, type LocalHistory, openHistory } from "../../../src/books/history/history";
import { entry, noon } from "../../support/history-rows";
import { temporaryFolder } from "../../support/temporary-folder";

/** The folder of each test of a file, how much is kept there, what it warned of, and what is closed at the end. */
export function eachAnew() {
  const here = {
    ...{ folder: "", path: "", days: 14, rows: 200_000 },
    ...{ warnings: [] as string[], opened: [] as { close(): void }[] },
    /** @param clock Other clocks than one that stands at noon. */
    open(clock: { now(): number; monotonic?(): number } = { now: () => noon }): LocalHistory {
      const limits = { retentionDays: () => here.days, maxRows: () => here.rows };
      const history = openHistory(here.path, {
        ...{ ...limits, ...clock, warn: (sentence: string) => void here.warnings.push(sentence) },
      });
      here.opened.push(history);
      return history;
    },
  };
  beforeEach(() => {
    const folder = temporaryFolder();
    Object.assign(here, {
      folder,
      path: join(folder, "admin.sqlite"),
      days: 14,
      rows: 200_000,
      warnings: [],
      opened: [],
    });
  });
  afterEach(() => {
    for (const one of here.opened) one.close();
  });
  return here;
}

/** Writes these rows. */
export function fill(history: LocalHistory, rows: readonly Partial<Entry>[]): void {
  for (const differing of rows) history.add(entry(differing));
  expect(history.flush()).toBe(true);
}
