/**
 * Keeps the columns that statistics need in memory, in blocks of neighbouring ids. SQLite takes a fifth of a second to
 * read 200,000 rows, and blocks the event loop meanwhile. A block is read once, in a few milliseconds: rows never change,
 * and are removed only when they are too old or too many.
 */
import type { Database } from "bun:sqlite";
import { type Filters, idsBetween, type NameColumn } from "./page";

/** The columns that are added up. */
export const measureColumns = [
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "nano_credits",
  "premium_units",
] as const;

/** The columns whose percentiles are computed. */
export const durations = ["duration_ms", "first_byte_ms"] as const;

type NumberColumn = (typeof measureColumns)[number] | (typeof durations)[number];

/** Rows of neighbouring ids; all columns share one index. */
export interface ColumnBlock {
  rows: number;
  started: Float64Array;
  status: Uint16Array;
  failed: Uint8Array;
  streamed: Uint8Array;
  /** NaN is unknown. */
  numbers: Record<NumberColumn, Float64Array>;
  /** The columns that have been asked for so far. */
  names: Partial<Record<NameColumn, Names>>;
}

export interface Names {
  /** Row → index in `values`. */
  codes: Uint16Array;
  values: (string | null)[];
}

export interface ColumnCache {
  /** The blocks that may hold rows of that time, the newest first, with these name columns. Other work has its turn between. */
  read(names: NameColumn[], within: Pick<Filters, "from_ms" | "to_ms">): AsyncGenerator<ColumnBlock>;
  /** Frees all blocks. */
  clear(): void;
}

/** How many ids a block spans. */
const span = 4096;
/** The most blocks kept: half a million rows in about 50 MB. The oldest are dropped first. */
const maxKept = 128;
const idleMs = 5 * 60_000;
/** How many blocks in memory are read in one turn of the event loop. */
const inOneTurn = 8;

const numberColumns = [...measureColumns, ...durations];
const head = ["id", "started_at_ms", "http_status", "error_type IS NOT NULL", "stream"];

interface Kept extends ColumnBlock {
  firstId: number;
  lastId: number;
  oldest: number;
}

/** @param ask Queries the database that the history uses now, which may be another one the next time. */
export function openColumnCache(ask: <T>(question: (database: Database) => T) => T): ColumnCache {
  const kept = new Map<number, Kept>();
  let of: Database | undefined;
  let idle: Timer | undefined;

  const clear = () => {
    clearTimeout(idle);
    kept.clear();
    of = undefined;
  };

  /** Finds the ids to read, and drops blocks with rows that are no longer on disk. */
  const begin = (database: Database, { from_ms, to_ms }: Pick<Filters, "from_ms" | "to_ms">) => {
    if (database !== of) kept.clear();
    of = database;
    const all = edges(database);
    // Pruning removes the lowest ids, or the rows that started first.
    for (const [number, { firstId, oldest }] of kept)
      if (firstId < all.firstId || oldest < all.oldest) kept.delete(number);
    const timed = from_ms !== undefined || to_ms !== undefined;
    return { newestId: all.lastId, ids: timed ? idsBetween(database, from_ms, to_ms) : idsOf(all) };
  };

  /** @returns The block, unless it is empty, and whether it was read from disk. */
  const blockAt = (database: Database, number: number, newestId: number, names: NameColumn[]) => {
    const lastId = Math.min(newestId, (number + 1) * span - 1);
    const known = kept.get(number);
    if (known && known.lastId >= lastId && names.every((name) => known.names[name])) return { block: known };
    const block = readBlock(
      database,
      number * span,
      lastId,
      known && known.lastId >= lastId ? known : undefined,
      names,
    );
    if (block) keep(number, block);
    return { block, read: true };
  };

  const keep = (number: number, block: Kept) => {
    kept.set(number, block);
    if (kept.size > maxKept) kept.delete(Math.min(...kept.keys()));
  };

  return {
    async *read(names, within) {
      clearTimeout(idle);
      idle = setTimeout(clear, idleMs);
      idle.unref();
      const { newestId, ids } = ask((database) => begin(database, within));
      if (!ids) return;
      let gone = 0;
      for (let number = Math.floor(ids.last / span); number >= Math.floor(ids.first / span); number -= 1) {
        const { block, read } = ask((database) => blockAt(database, number, newestId, names));
        if (block) yield block;
        gone += read ? inOneTurn : 1;
        if (gone >= inOneTurn) {
          gone = 0;
          await new Promise(setImmediate);
        }
      }
    },
    clear,
  };
}

function edges(database: Database) {
  const one = (sql: string) => database.query<{ value: number | null }, []>(sql).get()!.value ?? 0;
  return {
    firstId: one("SELECT min(id) AS value FROM requests"),
    lastId: one("SELECT max(id) AS value FROM requests"),
    oldest: one("SELECT min(started_at_ms) AS value FROM requests"),
  };
}

const idsOf = ({ firstId, lastId }: { firstId: number; lastId: number }) =>
  lastId > 0 ? { first: firstId, last: lastId } : undefined;

/** @param known The block in memory, if only names are missing. */
function readBlock(
  database: Database,
  firstId: number,
  lastId: number,
  known: Kept | undefined,
  names: NameColumn[],
): Kept | undefined {
  const block = known ?? readNumbers(database, firstId, lastId);
  if (!block) return undefined;
  for (const name of names) block.names[name] ??= readNames(database, firstId, lastId, name);
  const whole = names.every((name) => block.names[name]!.codes.length === block.rows);
  // Rows were pruned since the numbers were read.
  return whole ? block : readBlock(database, firstId, lastId, undefined, names);
}

export const numbersQuery = `SELECT ${[...head, ...numberColumns]} FROM requests WHERE id BETWEEN $firstId AND $lastId ORDER BY id`;
export const namesQuery = (name: NameColumn) =>
  `SELECT ${name} FROM requests NOT INDEXED WHERE id BETWEEN $firstId AND $lastId ORDER BY id`;

function readNumbers(database: Database, firstId: number, lastId: number): Kept | undefined {
  const read = database.query<unknown, Record<string, number>>(numbersQuery).values({ firstId, lastId });
  const rows = read as (number | null)[][];
  if (rows.length === 0) return undefined;
  const fill = <T extends Float64Array | Uint16Array | Uint8Array>(column: T, place: number): T => {
    for (let row = 0; row < rows.length; row += 1) column[row] = rows[row]![place] ?? Number.NaN;
    return column;
  };
  const numbers = numberColumns.map((name, place) => [name, fill(new Float64Array(rows.length), head.length + place)]);
  const started = fill(new Float64Array(rows.length), 1);
  return {
    rows: rows.length,
    firstId: rows[0]![0]!,
    lastId,
    started,
    oldest: started.reduce((oldest, start) => Math.min(oldest, start)),
    status: fill(new Uint16Array(rows.length), 2),
    failed: fill(new Uint8Array(rows.length), 3),
    streamed: fill(new Uint8Array(rows.length), 4),
    numbers: Object.fromEntries(numbers) as ColumnBlock["numbers"],
    names: {},
  };
}

function readNames(database: Database, firstId: number, lastId: number, name: NameColumn): Names {
  const rows = database.query<unknown, Record<string, number>>(namesQuery(name)).values({ firstId, lastId });
  const codes = new Uint16Array(rows.length);
  const places = new Map<string | null, number>();
  for (const [row, [value]] of (rows as [string | null][]).entries()) {
    let place = places.get(value);
    if (place === undefined) {
      place = places.size;
      places.set(value, place);
    }
    codes[row] = place;
  }
  return { codes, values: [...places.keys()] };
}
