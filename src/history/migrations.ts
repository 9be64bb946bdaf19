/** The schema of the history's file. */
import type { Database } from "bun:sqlite";
import type { Migration } from "../sqlite";
import { columnNames, entryColumns, promptIndexes } from "./entry";
import { prepareRollup } from "./sqlite-rollup";

/** Step 1 creates the table with all present columns. A later step is needed only to change what older files hold. */
export const migrations: Migration[] = [
  (database) => {
    const typed = Object.entries(entryColumns).map(([name, { sql }]) => `${name} ${sql}`);
    database.run(`CREATE TABLE requests (id INTEGER PRIMARY KEY, ${typed.join(", ")})`);
    database.run("CREATE INDEX requests_started_at_ms ON requests (started_at_ms)");
  },
  // Steps 2 to 5 were of versions before the first release.
  ...Array.from({ length: 4 }, () => () => {}),
  (database) => {
    for (const table of ["rollups", "rollup_names", "rollup_layout"]) database.run(`DROP TABLE IF EXISTS ${table}`);
    for (const change of ["delete", "update"]) database.run(`DROP TRIGGER IF EXISTS rollup_after_${change}`);
  },
];

/** Adds the columns that the file lacks, and the tables of the rollup. */
export function prepareHistory(database: Database): void {
  const sql = "SELECT name FROM pragma_table_info('requests')";
  const known = () =>
    new Set(
      database
        .query<{ name: string }, []>(sql)
        .all()
        .map(({ name }) => name),
    );
  if (!columnNames.every((name) => known().has(name)))
    database
      .transaction(() => {
        const present = known();
        for (const name of columnNames)
          if (!present.has(name)) database.run(`ALTER TABLE requests ADD COLUMN ${name} ${entryColumns[name].sql}`);
      })
      .immediate();
  for (const columns of promptIndexes)
    database.run(
      `CREATE INDEX IF NOT EXISTS requests_${columns.replace(", ", "_")} ON requests (${columns}) WHERE prompt IS NOT NULL`,
    );
  prepareRollup(database);
}
