/**
 * Keeps the rollup of the history in the same file: a block of rows is added up in the transaction of its last row. A
 * block on disk holds exactly its rows; one that is not on disk is added up from its rows when it is needed.
 */
import type { Database } from "bun:sqlite";
import { conditionOf, type Filters, nameColumns } from "./filters";
import {
  blockOf,
  blockRows,
  failedIn,
  hourPhase,
  keyPlaces,
  keyWidth,
  type RolledRow,
  type RollupBlock,
  rolledColumns,
  rollUp,
  rollupLayout,
  slotsOfHours,
  slotsOfQuarters,
  statusIn,
  streamIn,
} from "./rollup";

export const rollupTables = [
  `CREATE TABLE rollups (block INTEGER PRIMARY KEY, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
    keys BLOB NOT NULL, row_places BLOB NOT NULL, buckets BLOB NOT NULL, counts BLOB NOT NULL, sums BLOB NOT NULL)`,
  // An id is never used again, so that a statement that is under way takes no name for another.
  "CREATE TABLE rollup_names (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE)",
  "CREATE TABLE rollup_layout (layout TEXT NOT NULL)",
];

/** Names stay when their rows go. At so many, all blocks and names are made again. */
const maxNames = 50_000;

/** Removes blocks that another version, or a clock of another time zone, has made. */
export function adoptLayout(database: Database): void {
  const layout = `${rollupLayout} ${hourPhase()}`;
  if (layoutOf(database) === layout) return;
  database
    .transaction(() => {
      clearRollup(database);
      watchRows(database);
      database.run("DELETE FROM rollup_layout");
      database.query("INSERT INTO rollup_layout VALUES (?)").run(layout);
    })
    .immediate();
}

/** Whoever removes or changes rows, in whatever program, removes their blocks. New rows have ids above all others. */
function watchRows(database: Database): void {
  for (const change of ["DELETE", "UPDATE"]) {
    const name = `rollup_after_${change.toLowerCase()}`;
    database.run(`DROP TRIGGER IF EXISTS ${name}`);
    database.run(`CREATE TRIGGER ${name} AFTER ${change} ON requests
      BEGIN DELETE FROM rollups WHERE block = OLD.id / ${blockRows}; END`);
  }
}

const layoutOf = (database: Database) =>
  database.query<{ layout: string }, []>("SELECT layout FROM rollup_layout").get()?.layout;

function clearRollup(database: Database): void {
  database.run("DELETE FROM rollups");
  database.run("DELETE FROM rollup_names");
}

/** Adds up the blocks that were completed by rows with these ids. To be called in the transaction that wrote them. */
export function sealCompleted(database: Database, firstId: number, lastId: number): void {
  for (let block = blockOf(firstId); block < blockOf(lastId + 1); block += 1) sealBlock(database, block);
}

export function sealBlock(database: Database, block: number): void {
  const rows = rowsOfBlock(database, block, {});
  if (rows.length === 0) return;
  const {
    firstMs,
    lastMs,
    keys,
    rows: places,
    buckets,
    counts,
    sums,
  } = rollUp(rows, internIn(database), slotsOfHours(hourPhase()));
  const bytes = [keys, places, buckets, counts, sums].map((part) => new Uint8Array(part.buffer));
  const sql = "INSERT OR REPLACE INTO rollups VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
  database.query(sql).run(block, firstMs, lastMs, ...bytes);
}

/** Numbers the names on disk. */
function internIn(database: Database): (name: string) => number {
  const known = new Map<string, number>();
  const insert = database.query<{ id: number }, [string]>("INSERT INTO rollup_names (name) VALUES (?) RETURNING id");
  return (name) => {
    let id = known.get(name);
    if (id === undefined) {
      id = nameId(database, name) ?? insert.get(name)!.id;
      known.set(name, id);
    }
    return id;
  };
}

/** Undefined when no block has the name. */
export function nameId(database: Database, name: string): number | undefined {
  return database.query<{ id: number }, [string]>("SELECT id FROM rollup_names WHERE name = ?").get(name)?.id;
}

export function rolledName(database: Database, id: number): string | null {
  return database.query<{ name: string }, [number]>("SELECT name FROM rollup_names WHERE id = ?").get(id)?.name ?? null;
}

/** The blocks that are complete and not on disk, the newest first. */
export function unsealedBlocks(database: Database): number[] {
  const names = database.query<{ names: number }, []>("SELECT count(*) AS names FROM rollup_names").get()!.names;
  if (names > maxNames) clearRollup(database);
  const ids = idRange(database);
  if (!ids) return [];
  return blocksBetween(database, ids.first, blockOf(ids.last + 1) * blockRows - 1)
    .filter(({ sealed }) => !sealed)
    .map(({ block }) => block);
}

export function idRange(database: Database): { first: number; last: number } | undefined {
  const one = (sql: string) => database.query<{ id: number | null }, []>(sql).get()!.id;
  const first = one("SELECT min(id) AS id FROM requests");
  return first === null ? undefined : { first, last: one("SELECT max(id) AS id FROM requests")! };
}

/** The blocks that may hold rows of the time, the newest first. */
export function blocksWithin(database: Database, { from_ms, to_ms }: Filters): number[] {
  const ids = idRange(database);
  if (!ids) return [];
  const from = from_ms ?? Number.NEGATIVE_INFINITY;
  const to = to_ms ?? Number.POSITIVE_INFINITY;
  return blocksBetween(database, ids.first, ids.last)
    .filter(({ sealed }) => !sealed || (sealed.last_ms >= from && sealed.first_ms <= to))
    .map(({ block }) => block);
}

interface Times {
  first_ms: number;
  last_ms: number;
}

function blocksBetween(database: Database, firstId: number, lastId: number): { block: number; sealed?: Times }[] {
  const [first, last] = [blockOf(firstId), blockOf(lastId)];
  const sql = "SELECT block, first_ms, last_ms FROM rollups WHERE block BETWEEN ? AND ?";
  const found = database.query<Times & { block: number }, [number, number]>(sql).all(first, last);
  const sealed = new Map(found.map((times) => [times.block, times]));
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => ({
    block: last - at,
    sealed: sealed.get(last - at),
  }));
}

/** @returns Undefined when the block is not on disk. */
export function readBlock(database: Database, block: number): RollupBlock | undefined {
  const sql = "SELECT first_ms, last_ms, keys, row_places, buckets, counts, sums FROM rollups WHERE block = ?";
  const found = database.query(sql).values(block)[0];
  if (!found) return undefined;
  const [firstMs, lastMs, keys, rows, buckets, counts, sums] = found as [number, number, ...Uint8Array[]];
  return {
    ...{ firstMs, lastMs, buckets: buckets! },
    ...keysIn(keys!),
    rows: new Uint16Array(rows!.buffer),
    counts: new Uint16Array(counts!.buffer),
    sums: new Float64Array(sums!.buffer),
  };
}

/** What is needed to find out whether rows of the block pass filters. */
export function readKeys(
  database: Database,
  block: number,
): Pick<RollupBlock, "cells" | "keys" | "firstMs" | "lastMs"> | undefined {
  const found = database.query("SELECT first_ms, last_ms, keys FROM rollups WHERE block = ?").values(block)[0];
  if (!found) return undefined;
  const [firstMs, lastMs, keys] = found as [number, number, Uint8Array];
  return { firstMs, lastMs, ...keysIn(keys) };
}

function keysIn(bytes: Uint8Array): Pick<RollupBlock, "cells" | "keys"> {
  const keys = new Int32Array(bytes.buffer);
  return { keys, cells: keys.length / keyWidth };
}

/** The ids of the block's rows in the cells, the newest first; undefined when the block is not on disk. */
export function readIds(database: Database, block: number, isWanted: (cell: number) => boolean): number[] | undefined {
  const found = database.query("SELECT row_places FROM rollups WHERE block = ?").values(block)[0];
  if (!found) return undefined;
  const places = new Uint16Array((found[0] as Uint8Array).buffer);
  const ids: number[] = [];
  for (let at = places.length - 2; at >= 0; at -= 2)
    if (isWanted(places[at]!)) ids.push(block * blockRows + places[at + 1]!);
  return ids;
}

/** The block's rows that pass the filters, added up from the rows themselves. */
export function rollUpRows(
  database: Database,
  block: number,
  filters: Filters,
  idOf: (name: string) => number,
): RollupBlock {
  return rollUp(rowsOfBlock(database, block, filters), idOf, slotsOfQuarters);
}

function rowsOfBlock(database: Database, block: number, filters: Filters): RolledRow[] {
  const { sql, values } = conditionOf(filters, block * blockRows, (block + 1) * blockRows - 1);
  return database
    .query(`SELECT ${rolledColumns} FROM requests WHERE ${sql} ORDER BY id`)
    .values(values as never) as RolledRow[];
}

export type CellTest = (block: Pick<RollupBlock, "keys" | "cells">, cell: number) => boolean;

/** A test of the cells of blocks on disk; times are not tested. Undefined when no cell passes. */
export function cellTest(database: Database, filters: Filters): CellTest | undefined {
  const { stream, status, status_class, has_error } = filters;
  const wanted: [place: number, id: number][] = [];
  for (const name of nameColumns) {
    const value = filters[name];
    if (value === undefined) continue;
    const id = value === null ? 0 : nameId(database, value);
    if (id === undefined) return undefined;
    wanted.push([keyPlaces[name], id]);
  }
  const hasFlags = [stream, status, status_class, has_error].some((value) => value !== undefined);
  const passesFlags = (flags: number): boolean =>
    (stream === undefined || streamIn(flags) === stream) &&
    (status === undefined || statusIn(flags) === status) &&
    (status_class === undefined || Math.floor(statusIn(flags) / 100) === status_class) &&
    (has_error === undefined || failedIn(flags) === has_error);
  return ({ keys, cells }, cell) => {
    for (const [place, id] of wanted) if (keys[place * cells + cell] !== id) return false;
    return !hasFlags || passesFlags(keys[keyPlaces.flags * cells + cell]!);
  };
}
