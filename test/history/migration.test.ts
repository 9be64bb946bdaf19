/** A history of an older dragoman: its rows stay, and take what newer rows have beside. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { columnNames } from "../../src/history/entry";
import { openHistory } from "../../src/history/history";
import { migrations } from "../../src/history/migrations";
import { entry, noon } from "../support/history-rows";
import { quickest } from "../support/quickest";

test("a history from before accounts had keys goes on with all its rows, their key unknown", async () => {
  const folder = mkdtempSync(join(quickest(), "dragoman-"));
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

test("a history from before the rollup loses its indexes and no row, and is added up in the background", async () => {
  const folder = mkdtempSync(join(quickest(), "dragoman-"));
  const path = join(folder, "admin.sqlite");
  const database = new Database(path, { strict: true });
  for (const migrate of migrations.slice(0, 4)) migrate(database);
  for (const name of ["account_id", "client_model", "path", "http_status", "stream", "account_key"])
    database.run(`CREATE INDEX requests_${name} ON requests (${name})`);
  database.run("CREATE INDEX requests_failed ON requests (id) WHERE error_type IS NOT NULL");
  database.run("CREATE INDEX requests_status_class ON requests (http_status / 100)");
  // Columns that later versions added.
  database.run("ALTER TABLE requests DROP COLUMN premium_units; ALTER TABLE requests DROP COLUMN client_name");
  const names = columnNames.filter((name) => name !== "premium_units" && name !== "client_name");
  const insert = database.query(`INSERT INTO requests (${names}) VALUES (${names.map((name) => `$${name}`)})`);
  database.transaction(() => {
    for (let at = 0; at < 3_000; at += 1) {
      const { premium_units: _, client_name: __, ...older } = entry({ account_id: at % 3 ? "ada" : "bob" });
      insert.run(older);
    }
  })();
  database.run("PRAGMA user_version = 4");

  const indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'requests' AND sql IS NOT NULL";
  const blocks = () => database.query<{ blocks: number }, []>("SELECT count(*) AS blocks FROM rollups").get()!.blocks;
  const history = openHistory(path, { retentionDays: () => 14, maxRows: () => 9_000, warn() {}, now: () => noon });
  try {
    expect(database.query(indexes).all()).toEqual([{ name: "requests_started_at_ms" }]);
    for (const expected of [0, 2]) {
      expect(blocks()).toBe(expected);
      const { groups, totals } = await history.statistics({}, ["account_id", "client_name"]);
      expect(groups.map(({ key, request_count }) => [key.account_id, key.client_name, request_count])).toEqual([
        ["ada", null, 2_000],
        ["bob", null, 1_000],
      ]);
      expect([totals.premium_units, totals.unknown.premium_units]).toEqual([null, 3_000]);
      expect(history.list({ account_id: "bob" }, 3).items.map(({ id }) => id)).toEqual([2_998, 2_995, 2_992]);
      await history.prune();
    }
  } finally {
    history.close();
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
