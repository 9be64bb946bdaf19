/** The steps that lead to the present schema of the database, which the files of `schema/` describe. */
import type { TransactionSQL } from "bun";
import { columnNames, entryColumns, promptIndexes } from "../books/history/entry";
import { portionTable, unknownCostColumn } from "../books/history/portions";
import { rollupColumns } from "../books/history/rollup";
import { ProxyError } from "../lib/errors";
import { memberFieldNames } from "../people/keys/member-fields";
import { memberColumnTypes, memberTables } from "../people/keys/member-tables";
import type { Postgres } from "./connection";
import ledger from "./schema/ledger.sql" with { type: "text" };
import requests from "./schema/requests.sql" with { type: "text" };
import tables from "./schema/tables.sql" with { type: "text" };

interface Step {
  /**
   * The oldest step at which a server still works with the database after this one: servers of two versions run side by side
   * during an upgrade. A step that only adds something is compatible with the one before.
   */
  compatibleWith: number;
  /** Each text has any number of statements. */
  sql: readonly string[];
}

/** Column types of the history. */
const postgresTypes = { TEXT: "text", INTEGER: "bigint", FLAG: "smallint" } as const;

/** `TEXT NOT NULL UNIQUE` → `text NOT NULL`: a partitioned table has its unique index apart. */
const columnType = (type: string): string =>
  type.replace(/^[A-Z]+/, (name) => postgresTypes[name as keyof typeof postgresTypes]).replace(" UNIQUE", "");

const requestColumns = columnNames.map((name) => `${name} ${columnType(entryColumns[name].sql)}`).join(", ");

/** The columns of `dragoman.requests`: name and type, without constraints. */
export const requestTypes = columnNames.map(
  (name) => `${name} ${columnType(entryColumns[name].sql).replace(/ NOT NULL.*/, "")}`,
);

const requestsWithColumns = requests
  .replace("/* the columns of history/entry.ts */", requestColumns)
  .replace("/* the columns of history/rollup.ts */", rollupColumns().join(", "))
  .replace(
    "/* the table of history/portions.ts */",
    portionTable("dragoman.portions", { text: "text", integer: "bigint" }),
  );

/** The first step may change until a version is released; then no step does, and new ones are added at the end. */
const steps: readonly Step[] = [{ compatibleWith: 1, sql: [memberTables, tables, requestsWithColumns, ledger] }];

/** The number of steps that this version knows. */
export const schemaVersion = steps.length;

/** Oldest supported. */
const minServerVersion = 150_000;

/**
 * Leads the database to this version's schema, unless it is newer and still works with this version. Of several servers one
 * does it while the others wait.
 * @throws ProxyError if the database is too new or Postgres too old.
 */
export async function migrate(postgres: Postgres): Promise<void> {
  await postgres.transact(async (sql) => {
    await requireServer(sql);
    await sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman migrate', 0))`;
    await sql.unsafe("CREATE SCHEMA IF NOT EXISTS dragoman");
    await sql.unsafe(`CREATE TABLE IF NOT EXISTS dragoman.schema (singleton boolean PRIMARY KEY DEFAULT true
      CHECK (singleton), version int NOT NULL, compatible_with int NOT NULL)`);
    const [row] = await sql<VersionRow[]>`SELECT version, compatible_with FROM dragoman.schema`;
    requireCompatible(row);
    for (const step of steps.slice(row?.version ?? 0)) for (const text of step.sql) await sql.unsafe(text).simple();
    await addColumns(sql);
    const compatibleWith = steps.at(-1)!.compatibleWith;
    if ((row?.version ?? 0) < schemaVersion)
      await sql`INSERT INTO dragoman.schema (version, compatible_with) VALUES (${schemaVersion}, ${compatibleWith})
        ON CONFLICT (singleton) DO UPDATE SET version = ${schemaVersion}, compatible_with = ${compatibleWith}`;
  }, migrateTimeoutMs);
}

interface VersionRow {
  version: number;
  compatible_with: number;
}

/** Milliseconds. Other servers wait as long. */
const migrateTimeoutMs = 10 * 60_000;

async function requireServer(sql: TransactionSQL): Promise<void> {
  const [row] = await sql<{ server_version_num: string }[]>`SHOW server_version_num`;
  if (Number(row!.server_version_num) < minServerVersion)
    throw new ProxyError(
      "invalid_request",
      `dragoman needs Postgres 15 or newer; this one is ${Math.floor(Number(row!.server_version_num) / 10_000)}.`,
    );
}

function requireCompatible(row: VersionRow | undefined): void {
  if (row === undefined || row.compatible_with <= schemaVersion) return;
  throw new ProxyError(
    "invalid_request",
    `The database was changed by a newer dragoman (schema ${row.version}), which this version does not understand (schema ${schemaVersion}). Update dragoman.`,
    { code: "schema_too_new" },
  );
}

/** The columns that members, the history and the portions have since a later version. What was added up without one is added up again. */
async function addColumns(sql: TransactionSQL): Promise<void> {
  const missingOf = async <Name extends string>(table: string, names: readonly Name[]) => {
    // The view information_schema.columns takes a hundred times as long.
    const present = await sql<{ attname: string }[]>`SELECT attname FROM pg_attribute
      WHERE attrelid = ${`dragoman.${table}`}::text::regclass AND attnum > 0 AND NOT attisdropped`;
    return names.filter((name) => !present.some(({ attname }) => attname === name));
  };
  for (const name of await missingOf("members", memberFieldNames))
    await sql.unsafe(`ALTER TABLE dragoman.members ADD COLUMN ${memberColumnTypes.get(name)}`);
  for (const name of await missingOf("requests", columnNames))
    await sql.unsafe(`ALTER TABLE dragoman.requests ADD COLUMN ${name} ${columnType(entryColumns[name].sql)}`);
  for (const columns of promptIndexes)
    await sql.unsafe(`CREATE INDEX IF NOT EXISTS requests_${columns.replace(", ", "_")}
      ON dragoman.requests (${columns}) WHERE prompt IS NOT NULL`);
  if ((await missingOf("portions", ["unknown_cost"])).length > 0)
    await sql.unsafe(`ALTER TABLE dragoman.portions ADD COLUMN ${unknownCostColumn("bigint")}`);
  const definitions = new Map(rollupColumns().map((column) => [column.split(" ", 1)[0]!, column]));
  for (const name of await missingOf("rollup", [...definitions.keys()])) {
    await sql.unsafe("DELETE FROM dragoman.rollup_periods; DELETE FROM dragoman.rollup");
    await sql.unsafe(`ALTER TABLE dragoman.rollup ADD COLUMN ${definitions.get(name)}`);
  }
}
