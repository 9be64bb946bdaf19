/** Writes rows of the history into daily partitions, and removes the partitions of days that are too old. */
import type { TransactionSQL } from "bun";
import { columnNames, type Entry } from "../books/history/entry";
import { addedToPortions, portionColumns } from "../books/history/portions";
import { dayMs, hourMs, utcDay } from "../lib/format";
import { sqlState } from "./away";
import type { Postgres } from "./connection";
import type { Questions } from "./lane";
import { requestTypes } from "./schema";

const columnList = columnNames.join(", ");
/** Milliseconds. A request is written when it ends, which is within 65 minutes of its start. What started before that is there. */
const settledAfter = 75 * 60_000;

/** Unix ms by the clock of the database, which is that of all servers. */
const databaseNow = "(extract(epoch FROM now()) * 1000)::bigint";

/** A row of a server whose clock is late may come when its hour was added up already: those sums are forgotten. */
const insertSql = `WITH inserted AS (INSERT INTO dragoman.requests (${columnList})
    SELECT ${columnList} FROM json_to_recordset($1::text::json) AS given(${requestTypes.join(", ")})
    ON CONFLICT (request_id, started_at_ms) DO NOTHING RETURNING started_at_ms, member, upstream_model, portions),
  -- In the order of the key: of two servers that add to the same rows, one waits for the other, and not both.
  added AS (INSERT INTO dragoman.portions (${portionColumns})
    SELECT started_at_ms / ${dayMs}, coalesce(member, ''), coalesce(upstream_model, ''), portion->>0, coalesce(portion->>1, ''),
        count(*), sum((portion->>3)::bigint), sum((portion->>4)::bigint), sum(coalesce((portion->>5)::bigint, 0)),
        count(*) FILTER (WHERE portion->>5 IS NULL)
      FROM inserted, json_array_elements(inserted.portions::json) AS portion GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ${addedToPortions("dragoman.portions")})
  SELECT dragoman.forget_periods(min(started_at_ms), max(started_at_ms)) FROM inserted
  WHERE started_at_ms < coalesce($2::bigint, ${databaseNow}) - ${settledAfter} HAVING count(*) > 0`;

/**
 * Inserts all rows or none; rows that are there already stay as they are.
 * @param now Unix ms, in place of the clock of the database.
 * @throws Postgres' own error, also when the database is away; another one where their days cannot be seen yet.
 */
export async function insertRows(lane: Questions, entries: readonly Entry[], now?: number): Promise<void> {
  const rows = JSON.stringify(entries.map(storable));
  for (let tries = 0; ; tries += 1)
    try {
      await lane.ask((sql) => sql.unsafe(insertSql, [rows, now ?? null]));
      return;
    } catch (thrown) {
      if (sqlState(thrown) !== noPartition) throw thrown;
      // No fault of the rows: no error of Postgres, so that they wait in place of being left out.
      if (tries === 3) throw new Error("the days of the rows have no partitions yet", { cause: thrown });
      await addPartitions(
        lane,
        entries.map(({ started_at_ms }) => started_at_ms),
      );
    }
}

/** Periods that ended before it may be added up. Statements that began with an earlier clock have ended. */
export const settledBefore = (now: number): number => now - settledAfter - 5 * 60_000;

/** A check fails, among them that a row fits into a partition. */
const noPartition = "23514";

/** Postgres stores no NUL and no half of a surrogate pair. */
function storable(entry: Entry): Entry {
  let changed: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(entry))
    if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed())) {
      changed ??= { ...entry };
      changed[name] = value.toWellFormed().replaceAll("\0", "\ufffd");
    }
  return (changed as Entry | undefined) ?? entry;
}

const dayOf = (ms: number) => Math.floor(ms / dayMs) * dayMs;
const nameOf = (day: number) => `requests_${utcDay(day).replaceAll("-", "_")}`;

/** Makes the partitions of these times, unless they exist, and makes all connections look for them. */
export async function addPartitions(lane: Questions, times: readonly number[]): Promise<void> {
  const days = [...new Set(times.map(dayOf))].sort((one, other) => one - other);
  await lane.transact(async (sql) => {
    await lockPartitions(sql);
    const present = new Set((await partitionsIn(sql)).map(({ day }) => day));
    for (const day of days.filter((each) => !present.has(each))) {
      // Attached rather than created in place: that would wait for every running query, and hold up all later ones.
      await sql.unsafe(`CREATE TABLE dragoman.${nameOf(day)} (LIKE dragoman.requests INCLUDING DEFAULTS)`);
      await sql.unsafe(
        `ALTER TABLE dragoman.requests ATTACH PARTITION dragoman.${nameOf(day)} FOR VALUES FROM (${day}) TO (${day + dayMs})`,
      );
    }
  });
  // A connection that reads which partitions there are, while one is attached, may not know that one from then on (seen with
  // Postgres 18.4). A further change of the table makes all connections read again.
  await lane.ask((sql) => sql.unsafe("ALTER TABLE ONLY dragoman.requests ALTER COLUMN id SET STATISTICS -1"));
}

const lockPartitions = (sql: TransactionSQL) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman partitions', 0))`;

interface Partition {
  name: string;
  /** Its first moment, Unix ms. */
  day: number;
}

/** The oldest first. */
async function partitionsIn(sql: TransactionSQL): Promise<Partition[]> {
  const rows = await sql<{ name: string }[]>`SELECT child.relname AS name FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = 'dragoman.requests'::regclass`;
  return rows
    .map(({ name }) => ({ name, day: Date.parse(name.slice("requests_".length).replaceAll("_", "-")) }))
    .sort((one, other) => one.day - other.day);
}

/**
 * Removes the days that lie before a time as a whole, and the oldest days as long as at least `maxRows` rows stay.
 * @returns How many days were removed; undefined if another server is doing the same.
 */
export function removeOldDays(postgres: Postgres, before: number, maxRows: number): Promise<number | undefined> {
  return postgres.transact(async (sql) => {
    const [lock] = await sql<{ held: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended('dragoman partitions', 0)) AS held`;
    if (!lock!.held) return undefined;
    // A query that reads the day still holds it. The next round tries again.
    await sql.unsafe("SET LOCAL lock_timeout = '2s'");
    const partitions = await partitionsIn(sql);
    const old = partitions.filter(({ day }) => day + dayMs <= before);
    if (Number.isFinite(maxRows)) old.push(...(await daysBeyond(sql, partitions.slice(old.length), maxRows)));
    for (const { name, day } of old) {
      await sql.unsafe(`DROP TABLE dragoman.${name}`);
      const hours = sql`BETWEEN ${day / hourMs}::bigint AND ${day / hourMs + 23}::bigint`;
      await sql`DELETE FROM dragoman.rollup_periods WHERE hour ${hours}`;
      await sql`DELETE FROM dragoman.rollup WHERE hour ${hours}`;
      await sql`DELETE FROM dragoman.portions WHERE day = ${day / dayMs}::bigint`;
    }
    return old.length;
  }, 60_000);
}

async function daysBeyond(sql: TransactionSQL, partitions: Partition[], maxRows: number): Promise<Partition[]> {
  const beyond: Partition[] = [];
  let kept = 0;
  for (const partition of partitions.toReversed()) {
    if (kept >= maxRows) beyond.push(partition);
    else {
      const [row] = await sql.unsafe(`SELECT count(*)::float8 AS rows FROM dragoman.${partition.name}`);
      kept += row.rows;
    }
  }
  return beyond;
}
