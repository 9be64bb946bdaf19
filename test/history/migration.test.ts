/** A history of an older dragoman: its rows stay, and take what newer rows have beside. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { columnNames } from "../../src/history/entry";
import { openHistory } from "../../src/history/history";
import { migrations } from "../../src/history/migrations";
import { entry, noon } from "../support/history-rows";

test("a history from before accounts had keys goes on with all its rows, their key unknown", async () => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-"));
  const path = join(folder, "admin.sqlite");
  const { account_key: _, ...older } = entry({ request_id: "before", account_id: "octo" });
  const database = new Database(path, { strict: true });
  for (const migrate of migrations.slice(0, 2)) migrate(database);
  // The first step makes the columns of today.
  database.run("ALTER TABLE requests DROP COLUMN account_key");
  const names = columnNames.filter((name) => name !== "account_key");
  database.query(`INSERT INTO requests (${names}) VALUES (${names.map((name) => `$${name}`)})`).run(older);
  database.run("ALTER TABLE requests RENAME COLUMN fixups TO mends; PRAGMA user_version = 2");
  database.close();

  const warnings: string[] = [];
  const warn = (sentence: string) => void warnings.push(sentence);
  const history = openHistory(path, { retentionDays: () => 14, maxRows: () => 1000, warn, now: () => noon });
  try {
    history.add(entry({ request_id: "after", account_id: "octo" }));
    history.flush();
    expect(history.get("before")).toMatchObject({ account_id: "octo", account_key: null, fixups: older.fixups });
    expect(history.list({ account_key: "github.com/octo" }, 10).items.map((row) => row.request_id)).toEqual(["after"]);
    expect(history.list({ account_id: "octo" }, 10).items).toHaveLength(2);
    const { groups } = await history.statistics({}, ["account_key"]);
    expect(groups.map(({ key }) => key.account_key).toSorted()).toEqual(["github.com/octo", null]);
    expect([history.degraded, warnings]).toEqual([false, []]);
  } finally {
    history.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
