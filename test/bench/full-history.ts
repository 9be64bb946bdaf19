/** A history of many rows. */
import { openHistory } from "../../src/books/history/history";
import { inHome } from "../../src/config/home-names";
import { dayMs } from "../../src/lib/format";
import { entry } from "../support/history-rows";

/** Rows of 13 days, added up. @param home A data folder. */
export async function fillHistory(home: string, count: number): Promise<void> {
  const options = { retentionDays: () => 14, maxRows: () => 1e6, warn: (text: string) => console.error(text) };
  const history = openHistory(inHome(home, "history"), options);
  const now = Date.now();
  for (let row = 0; row < count; row++) {
    const started_at_ms = now - Math.floor((1 - row / count) * 13 * dayMs);
    history.add(entry({ started_at_ms, account_id: row % 3 ? "ada" : "bob" }));
    if (row % 5_000 === 4_999) history.flush();
  }
  history.flush();
  await history.prune();
  history.close();
}
