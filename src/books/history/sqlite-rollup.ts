/** The rollup in SQLite: its tables, its words, and how hours are added up beside a server that writes. */
import type { Database } from "bun:sqlite";
import { hourMs } from "../../lib/format";
import { bucketStarts, firstMark } from "./durations";
import {
  cellInserts,
  hasWholeHours,
  type PeriodLength,
  periodLengths,
  periodsToAddUp,
  rollupColumns,
  views,
} from "./rollup";
import type { Source, SqlDialect } from "./sql";

const sqlite: SqlDialect = {
  tables: { requests: "requests", rollup: "rollup", periods: "rollup_periods", portions: "portions" },
  isComplete: "complete",
  parameter: (place) => `?${place}`,
  text: (value) => value,
  texts: (parameter) => `value FROM json_each(${parameter})`,
  within: ({ parameter }, table, conditions) =>
    `FROM (SELECT ${["first_ms", "last_ms", "span", "length"].map((name, at) => `json_extract(value, '$[${at}]') AS ${name}`)}
      FROM json_each(${parameter})) AS piece CROSS JOIN ${table} AS each WHERE ${conditions}`,
  // A table, because the SQLite of macOS computes no logarithms.
  mark: (column) => `(SELECT mark FROM duration_marks WHERE from_ms <= ${column} ORDER BY from_ms DESC LIMIT 1)`,
  join: (texts) => `group_concat(${texts}, '')`,
  further: (column) => `max(json_array_length(${column}) - 1, 0)`,
  number: (expression) => expression,
};

const sqliteSource = (database: Database): Source => ({
  dialect: sqlite,
  rows: <Row>(sql: string, values: readonly unknown[]) => database.query(sql).all(...(values as never[])) as Row[],
});

/** Runs work on the file as it is now, whatever is written meanwhile. */
export async function atOneMoment<T>(database: Database, work: (source: Source) => Promise<T>): Promise<T> {
  database.run("BEGIN");
  try {
    return await work(sqliteSource(database));
  } finally {
    database.run("COMMIT");
  }
}

const columns = rollupColumns().join(", ");
/** Its text says how its sums are made. If it is not that of the file, they are made anew. */
const rollupTable = `CREATE TABLE rollup (${columns}, place integer NOT NULL, PRIMARY KEY (length, view, hour, place)) WITHOUT ROWID
  /* ${JSON.stringify([views, bucketStarts().length])} */`;

/** Whoever changes rows, in whatever program: their periods are to be added up again. */
const triggers = Object.entries({ INSERT: ["NEW"], DELETE: ["OLD"], UPDATE: ["OLD", "NEW"] }).map(([change, rows]) => {
  const name = `requests_after_${change.toLowerCase()}`;
  const forget = rows.flatMap((row) =>
    periodLengths.map(
      (length) => `DELETE FROM rollup_periods WHERE length = ${length}
        AND hour = ${row}.started_at_ms / ${length * hourMs} * ${length};`,
    ),
  );
  return `CREATE TRIGGER ${name} AFTER ${change} ON requests BEGIN ${forget.join(" ")} END`;
});

/** Makes the tables of the rollup, unless the file has them as this version makes them. */
export function prepareRollup(database: Database): void {
  const sql = "SELECT sql FROM sqlite_schema WHERE name = 'rollup'";
  const present = () => database.query<{ sql: string }, []>(sql).get()?.sql === rollupTable;
  if (present()) return;
  database
    .transaction(() => {
      if (present()) return;
      for (const table of ["rollup", "rollup_periods", "duration_marks"]) database.run(`DROP TABLE IF EXISTS ${table}`);
      database.run(rollupTable);
      // `claim` names who adds the period up: of several processes only the last one completes it.
      database.run(`CREATE TABLE rollup_periods (length INTEGER NOT NULL, hour INTEGER NOT NULL, claim TEXT NOT NULL,
        complete INTEGER NOT NULL, PRIMARY KEY (length, hour)) WITHOUT ROWID`);
      for (const trigger of triggers) {
        database.run(trigger.replace(/^CREATE TRIGGER (\w+) .*/s, "DROP TRIGGER IF EXISTS $1"));
        database.run(trigger);
      }
      database.run("CREATE TABLE duration_marks (from_ms INTEGER PRIMARY KEY, mark TEXT NOT NULL)");
      const insert = database.query("INSERT INTO duration_marks VALUES (?, ?)");
      for (const [at, start] of bucketStarts().entries())
        insert.run(at === 0 ? Number.MIN_SAFE_INTEGER : start, String.fromCharCode(firstMark + 1 + at));
    })
    .immediate();
}

/** Periods are added up when they ended so long ago, ms. A request that ends later makes that undone. */
const isOverAfter = 10 * 60_000;

/** The next periods to add up, the hours first. */
export async function nextPeriods(database: Database, now: number): Promise<{ length: PeriodLength; hours: number[] }> {
  const source = sqliteSource(database);
  const hours = await periodsToAddUp(source, now - isOverAfter, 1);
  if (hours.length > 0) return { length: 1, hours };
  return { length: 24, hours: await periodsToAddUp(source, now - isOverAfter, 24) };
}

/** Cells that are written in one transaction, which takes some milliseconds: a server that writes waits for it. */
const cellsAtOnce = 200;

/**
 * Adds up one period. The cells are made in a table of this connection, which locks nothing, and moved in small steps. If the
 * period's rows change meanwhile, or another process begins to add it up, it stays incomplete.
 */
export async function addUp(database: Database, hour: number, length: PeriodLength): Promise<void> {
  const claim = crypto.randomUUID();
  const insert = database.query("INSERT OR REPLACE INTO rollup_periods VALUES (?, ?, ?, 0)");
  write(database, () => insert.run(length, hour, claim));
  removeCells(database, hour, length);
  if (length === 24 && !(await hasWholeHours(sqliteSource(database), hour))) return;
  database.run(`CREATE TEMP TABLE IF NOT EXISTS cells (${columns})`);
  database.run("DELETE FROM temp.cells");
  for (const insert of cellInserts(sqlite, "temp.cells", hour, length)) database.run(insert);
  const { count } = database.query<{ count: number }, []>("SELECT count(*) AS count FROM temp.cells").get()!;
  const own = `length = ${length} AND hour = ${hour} AND claim = '${claim}'`;
  for (let place = 0; place < count; place += cellsAtOnce) {
    // The server that writes has its turn.
    await Bun.sleep(1);
    const some = `rowid > ${place} AND rowid <= ${place + cellsAtOnce}`;
    write(database, () =>
      database.run(`INSERT INTO rollup SELECT *, rowid FROM temp.cells
        WHERE ${some} AND EXISTS (SELECT 1 FROM rollup_periods WHERE ${own})`),
    );
  }
  write(database, () => database.run(`UPDATE rollup_periods SET complete = 1 WHERE ${own}`));
}

/** Removes the cells of periods whose rows were removed or changed. */
export function removeForgotten(database: Database): void {
  const sql = `SELECT DISTINCT length, hour FROM rollup WHERE view = 0 AND length IN (${periodLengths})
    AND NOT EXISTS (SELECT 1 FROM rollup_periods AS period WHERE period.length = rollup.length AND period.hour = rollup.hour)`;
  for (const { hour, length } of database.query<{ hour: number; length: PeriodLength }, []>(sql).all())
    removeCells(database, hour, length);
}

function removeCells(database: Database, hour: number, length: PeriodLength): void {
  for (const view of views.keys())
    write(database, () =>
      database.run(`DELETE FROM rollup WHERE length = ${length} AND view = ${view} AND hour = ${hour}`),
    );
}

const write = (database: Database, work: () => void) => database.transaction(work).immediate();
