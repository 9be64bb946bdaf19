/** Totals of many requests, and of groups of them. An unknown number is null, and is counted. */
import type { Database } from "bun:sqlite";
import { type Aggregate, addAggregate, addCells, openAggregate, type Totals, totalsOf } from "./aggregate";
import { type Dimension, type GroupValue, groupKey, isName, maxGroups, narrowTo, timeSpans } from "./dimensions";
import type { Filters } from "./filters";
import { keyPlaces, quarterMs, type RollupBlock, statusIn, sumPlaces, sumWidth } from "./rollup";
import { blocksWithin, type CellTest, cellTest, readBlock, rolledName, rollUpRows } from "./rollup-store";

export { type Dimension, dimensions } from "./dimensions";

export interface Group extends Totals {
  /** Dimension → readable value; null where it is unknown. */
  key: Partial<Record<Dimension, string | null>>;
  /** The filters that find exactly these requests. */
  filters: Filters;
}

export interface Statistics {
  by: Dimension[];
  totals: Totals;
  /** Groups by time: the newest first. Others: those with the most requests first. */
  groups: Group[];
  /** The totals of all groups beyond `maxGroups`. */
  others: Totals | null;
}

/** By what the pages group all requests, whatever the time. Where adding up takes long, that is done before somebody asks. */
export const usualQuestions: readonly (readonly Dimension[])[] = [
  [],
  ["hour"],
  ["day", "upstream_model"],
  ["member"],
  ["key_name"],
  ["client_name"],
  ["account_key", "account_id"],
  ["upstream_model"],
  ["client_name", "upstream_model"],
  ["cache_miss", "upstream_model"],
];

/** Other work has its turn after so long. */
const turnMs = 2;

/** Asks the file that the history uses now. */
type Ask = <T>(question: (database: Database) => T) => T;

/** @param by Two dimensions at most. */
export async function statisticsOf(ask: Ask, filters: Filters, by: Dimension[]): Promise<Statistics> {
  const groups = openGroups(by);
  const blocks = ask((database) => blocksWithin(database, filters));
  while (blocks.length > 0) {
    ask((database) => addBlocks(database, blocks, filters, groups));
    await new Promise(setImmediate);
  }
  return groups.list(filters);
}

/** Adds the first of the blocks, as many as fit in one turn, and removes them from the list. */
function addBlocks(database: Database, blocks: number[], filters: Filters, groups: Groups): void {
  const passes = cellTest(database, filters);
  const until = performance.now() + turnMs;
  do {
    const number = blocks.shift()!;
    const block = readBlock(database, number);
    if (!block) addRows(database, number, filters, groups);
    else if (passes) addSealed(database, number, block, filters, passes, groups);
  } while (blocks.length > 0 && performance.now() < until);
}

function addRows(database: Database, number: number, filters: Filters, groups: Groups): void {
  const block = rollUpRows(database, number, filters, groups.idOf);
  groups.add(database, block, new Uint8Array(block.cells).fill(1));
}

const hourQuarters = 4;

/** Cells that lie only in part in the period, or in one hour of this machine's clock, are added up from their rows. */
function addSealed(
  database: Database,
  number: number,
  block: RollupBlock,
  filters: Filters,
  passes: CellTest,
  groups: Groups,
): void {
  const { from_ms = Number.NEGATIVE_INFINITY, to_ms = Number.POSITIVE_INFINITY } = filters;
  const slotOf = (cell: number) => block.keys[keyPlaces.slot * block.cells + cell]!;
  const split = new Set<number>();
  const wanted = new Uint8Array(block.cells);
  for (let cell = 0; cell < block.cells; cell += 1) {
    const first = block.sums[cell * sumWidth + sumPlaces.first]!;
    const last = block.sums[cell * sumWidth + sumPlaces.last]!;
    if (last < from_ms || first > to_ms || !passes(block, cell)) continue;
    if (first < from_ms || last > to_ms || groups.splits(first, last)) split.add(slotOf(cell));
    else wanted[cell] = 1;
  }
  if (split.size > 0) for (let cell = 0; cell < block.cells; cell += 1) if (split.has(slotOf(cell))) wanted[cell] = 0;
  groups.add(database, block, wanted);
  for (const slot of split) {
    const from = Math.max(from_ms, slot * quarterMs);
    const to = Math.min(to_ms, (slot + hourQuarters) * quarterMs - 1);
    addRows(database, number, { ...filters, from_ms: from, to_ms: to }, groups);
  }
}

interface Groups {
  /** Adds the wanted cells: those with a 1. */
  add(database: Database, block: RollupBlock, wanted: Uint8Array): void;
  /** Numbers a name apart from the rollup on disk. */
  idOf(name: string): number;
  /** Whether two times of one hour UTC belong to different groups. */
  splits(first: number, last: number): boolean;
  list(filters: Filters): Promise<Statistics>;
}

function openGroups(by: Dimension[]): Groups {
  const ownNames = openOwnNames();
  const coders = by.map(coderOf);
  const [one, two] = coders;
  const groups = new Map<number, { values: GroupValue[]; aggregate: Aggregate }>();
  const others = openAggregate();
  const aggregateOf = (first: number, second: number): Aggregate => {
    const known = groups.get(first * codeLimit + second);
    if (known) return known.aggregate;
    if (groups.size >= maxGroups) return others;
    const values = coders.map((coder, at) => coder.values[at === 0 ? first : second]!);
    const aggregate = openAggregate();
    groups.set(first * codeLimit + second, { values, aggregate });
    return aggregate;
  };
  return {
    idOf: ownNames.idOf,
    add(database, block, wanted) {
      const nameFrom = (id: number) => {
        if (id === 0) return null;
        return id < 0 ? ownNames.nameOf(id) : rolledName(database, id);
      };
      const firsts = one?.of(block, wanted, nameFrom);
      const seconds = two?.of(block, wanted, nameFrom);
      const into: (Aggregate | undefined)[] = new Array(block.cells);
      for (let cell = 0; cell < block.cells; cell += 1)
        if (wanted[cell]) into[cell] = aggregateOf(firsts ? firsts[cell]! : 0, seconds ? seconds[cell]! : 0);
      addCells(into, block);
    },
    splits: (first, last) => coders.some((coder) => coder.splits?.(first, last)),
    async list(filters) {
      const total = openAggregate();
      addAggregate(total, others);
      const listed: Group[] = [];
      let until = performance.now() + turnMs;
      for (const { values, aggregate } of inOrder([...groups.values()])) {
        addAggregate(total, aggregate);
        listed.push({ key: groupKey(values), filters: narrowTo(filters, values), ...totalsOf(aggregate) });
        if (performance.now() < until) continue;
        await new Promise(setImmediate);
        until = performance.now() + turnMs;
      }
      if (by.length === 0) return { by, totals: totalsOf(total), groups: [], others: null };
      return { by, totals: totalsOf(total), groups: listed, others: others.counts[0]! > 0 ? totalsOf(others) : null };
    },
  };
}

/** Ids below 0 for the names of rows that are not rolled up on disk. */
function openOwnNames() {
  const ids = new Map<string, number>();
  const names: string[] = [];
  return {
    idOf(name: string): number {
      const id = ids.get(name) ?? -names.push(name);
      ids.set(name, id);
      return id;
    },
    nameOf: (id: number): string => names[-id - 1]!,
  };
}

function inOrder<G extends { values: GroupValue[]; aggregate: Aggregate }>(groups: G[]): G[] {
  const start = ({ values }: G) => values.find(({ from }) => from !== undefined)?.from ?? 0;
  return groups.sort((a, b) => start(b) - start(a) || b.aggregate.counts[0]! - a.aggregate.counts[0]!);
}

/** Codes of values are below it. */
const codeLimit = 2 ** 26;

/** Numbers the values of a dimension. */
interface Coder {
  /** Code → value. */
  values: GroupValue[];
  /** The code of each wanted cell. */
  of(block: RollupBlock, wanted: Uint8Array, nameFrom: (id: number) => string | null): Int32Array;
  splits?(first: number, last: number): boolean;
}

function coderOf(dimension: Dimension): Coder {
  if (dimension === "hour" || dimension === "day") return timeCoder(dimension);
  const values: GroupValue[] = [];
  const byLabel = new Map<string | null, number>();
  const codes = new Map<number, number>();
  const place = isName(dimension) ? keyPlaces[dimension] : keyPlaces.flags;
  const findCode = (key: number, nameFrom: (id: number) => string | null) => {
    const label = isName(dimension) ? nameFrom(key) : `${Math.floor(statusIn(key) / 100)}xx`;
    return byLabel.get(label) ?? values.push({ dimension, label }) - 1;
  };
  return {
    values,
    of({ keys, cells }, wanted, nameFrom) {
      const coded = new Int32Array(cells);
      for (let cell = 0; cell < cells; cell += 1) {
        if (!wanted[cell]) continue;
        const key = keys[place * cells + cell]!;
        let code = codes.get(key);
        if (code === undefined) {
          code = findCode(key, nameFrom);
          codes.set(key, code);
          byLabel.set(values[code]!.label, code);
        }
        coded[cell] = code;
      }
      return coded;
    },
  };
}

function timeCoder(dimension: "hour" | "day"): Coder {
  const values: Required<GroupValue>[] = [];
  const codes = new Map<number, number>();
  let latest = 0;
  const isIn = (time: number, code: number) => values[code] && time >= values[code].from && time <= values[code].to;
  const codeOf = (time: number): number => {
    if (isIn(time, latest)) return latest;
    const value = timeSpans[dimension](new Date(Math.floor(time / quarterMs) * quarterMs));
    latest = codes.get(value.from) ?? values.push({ dimension, ...value }) - 1;
    codes.set(value.from, latest);
    return latest;
  };
  return {
    values,
    of({ sums, cells }, wanted) {
      const coded = new Int32Array(cells);
      for (let cell = 0; cell < cells; cell += 1)
        if (wanted[cell]) coded[cell] = codeOf(sums[cell * sumWidth + sumPlaces.first]!);
      return coded;
    },
    splits: (first, last) => codeOf(first) !== codeOf(last),
  };
}
