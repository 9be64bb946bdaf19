/** The schema of the history's file. */
import type { Database } from "bun:sqlite";
import { addColumns, type Migration } from "../../lib/sqlite";
import { columnNames, entryColumns, promptIndexes } from "./entry";
import { portionTable, unknownCostColumn } from "./portions";
import { prepareRollup } from "./sqlite-rollup";
import { prepareTokenRatios } from "./token-ratios";

/** The first step creates the table with all present columns. A later one is needed only to change what older files hold. */
export const migrations: Migration[] = [
  (database) => {
    const typed = Object.entries(entryColumns).map(([name, { sql }]) => `${name} ${sql}`);
    database.run(`CREATE TABLE requests (id INTEGER PRIMARY KEY, ${typed.join(", ")})`);
    database.run("CREATE INDEX requests_started_at_ms ON requests (started_at_ms)");
  },
];

/** Adds the columns that the file lacks, and the tables of the rollup and of token ratios. */
export function prepareHistory(database: Database): void {
  addColumns(database, "requests", new Map(columnNames.map((name) => [name, `${name} ${entryColumns[name].sql}`])));
  for (const columns of promptIndexes)
    database.run(
      `CREATE INDEX IF NOT EXISTS requests_${columns.replace(", ", "_")} ON requests (${columns}) WHERE prompt IS NOT NULL`,
    );
  prepareRollup(database);
  database.run(portionTable("portions", { text: "TEXT", integer: "INTEGER" }));
  addColumns(database, "portions", new Map([["unknown_cost", unknownCostColumn("INTEGER")]]));
  prepareTokenRatios(database);
}
