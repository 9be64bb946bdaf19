/** The schema of the history's file. */
import type { Database } from "bun:sqlite";
import type { Migration } from "./database";
import { columnNames, entryColumns } from "./entry";
import { rollupTables } from "./rollup-store";

const hasColumn = (database: Database, name: string) =>
  database.query("SELECT 1 FROM pragma_table_info('requests') WHERE name = ?").get(name) !== null;

/** Step 1 creates the table with all present columns. A later step is needed only to change what older files hold. */
export const migrations: Migration[] = [
  (database) => {
    const typed = Object.entries(entryColumns).map(([name, type]) => `${name} ${type}`);
    database.run(`CREATE TABLE requests (id INTEGER PRIMARY KEY, ${typed.join(", ")})`);
    database.run("CREATE INDEX requests_started_at_ms ON requests (started_at_ms)");
  },
  // Steps 2 and 3 created indexes, which step 5 removes.
  () => {},
  () => {},
  (database) => {
    if (hasColumn(database, "mends")) database.run("ALTER TABLE requests RENAME COLUMN mends TO fixups");
  },
  // The blocks of the rollup say where the rows of a filter are, so no other index is needed.
  (database) => {
    const sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'requests' AND sql IS NOT NULL";
    for (const { name } of database.query<{ name: string }, []>(sql).all())
      if (name !== "requests_started_at_ms") database.run(`DROP INDEX ${name}`);
    for (const table of rollupTables) database.run(table);
  },
];

/** Adds the columns that the file lacks. */
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
          if (!present.has(name)) database.run(`ALTER TABLE requests ADD COLUMN ${name} ${entryColumns[name]}`);
      })
      .immediate();
}
