/**
 * Totals and groups of requests, added up by Postgres. Hours and days that are over are added up once for each question, for all
 * servers, so that only the last hours are read again. The meaning is that of `history/statistics.ts`.
 */

import { dayMs, hourMs } from "../../format";
import { type Aggregate, addAggregate, openAggregate, totalsOf } from "../../history/aggregate";
import { type Dimension, type GroupValue, groupKey, maxGroups, narrowTo } from "../../history/dimensions";
import type { Filters } from "../../history/filters";
import type { Statistics } from "../../history/statistics";
import { addUp, type ChunkGroup } from "./chunk";
import type { Postgres } from "./connection";
import { settledBefore } from "./requests";

/** Times are Unix ms, both ends included. */
interface Span {
  from: number;
  to: number;
  /** It is a whole hour or day that does not change any more. */
  isOver: boolean;
}

/** Milliseconds that one span may take. */
const spanTimeoutMs = 60_000;
/** Spans that are added up at the same time: the others' questions need connections too. */
const atOnce = 3;
/** By the estimate of the database. */
const maxRowsAtOnce = 2_000_000;
/** A span with more groups, such as one for each session, is not kept. */
const maxKeptGroups = 2_000;

/** @param by Two dimensions at most. */
export async function statisticsIn(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  now: number,
): Promise<Statistics> {
  const groups = new Map<string, ChunkGroup>();
  const spans = await spansOf(postgres, filters, now);
  const read = await openMemo(postgres, filters, by, spans);
  const left = [...spans];
  const worker = async () => {
    for (let span = left.shift(); span; span = left.shift()) merge(groups, await read(span));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return listed([...groups.values()], filters, by);
}

/** The whole time that the filters leave, in spans that can be kept and others. */
async function spansOf(postgres: Postgres, { from_ms, to_ms }: Filters, now: number): Promise<Span[]> {
  const [bounds] = await postgres.ask(
    (sql) => sql<{ first: number | null; last: number | null; most: number | null }[]>`
      SELECT min(started_at_ms)::float8 AS first, max(started_at_ms)::float8 AS last,
        (SELECT max(reltuples) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
          WHERE inhparent = 'dragoman.requests'::regclass)::float8 AS most
        FROM dragoman.requests`,
  );
  if (bounds?.first == null || bounds.last == null) return [];
  const from = Math.max(Math.ceil(from_ms ?? bounds.first), bounds.first);
  const to = Math.min(Math.floor(to_ms ?? bounds.last), bounds.last);
  // A kept span is a whole one, whatever the first and the last row are.
  const start = from_ms === undefined || from_ms < bounds.first ? Math.floor(from / dayMs) * dayMs : from;
  // A day of many rows is added up by its hours, so that nothing takes long.
  const lengths = (bounds.most ?? 0) > maxRowsAtOnce ? [hourMs] : [dayMs, hourMs];
  return cut(start, to, settledBefore(now), lengths);
}

/** @param lengths Of the spans that can be kept, the longest first. */
function cut(from: number, to: number, settled: number, lengths: readonly number[]): Span[] {
  const spans: Span[] = [];
  for (let at = from; at <= to; at = spans.at(-1)!.to + 1) {
    const whole = lengths.find((length) => at % length === 0 && at + length - 1 <= Math.min(to, settled));
    if (whole) spans.push({ from: at, to: at + whole - 1, isOver: true });
    else if (at >= settled - hourMs) spans.push({ from: at, to, isOver: false });
    else spans.push({ from: at, to: Math.min(to, (Math.floor(at / hourMs) + 1) * hourMs - 1), isOver: false });
  }
  return spans;
}

/** Reads spans: those that were asked before from what is kept, the others from their rows. */
async function openMemo(postgres: Postgres, filters: Filters, by: Dimension[], spans: readonly Span[]) {
  const { from_ms: _, to_ms: __, ...others } = filters;
  const zone = by.some((dimension) => dimension === "hour" || dimension === "day")
    ? Intl.DateTimeFormat().resolvedOptions().timeZone
    : undefined;
  const named = Object.entries(others).filter(([, value]) => value !== undefined);
  const text = JSON.stringify([1, named.toSorted(([one], [other]) => (one < other ? -1 : 1)), by, zone]);
  const query = new Bun.CryptoHasher("sha256").update(text).digest();
  const over = spans.filter(({ isOver }) => isOver);
  const [first, last] = [over[0]?.from ?? 0, over.at(-1)?.to ?? 0];
  const kept =
    over.length === 0
      ? []
      : await postgres.ask(
          (sql) => sql<
            KeptRow[]
          >`SELECT from_ms::float8 AS from_ms, to_ms::float8 AS to_ms, groups FROM dragoman.statistics
            WHERE query = ${query} AND from_ms >= ${first} AND to_ms <= ${last}`,
        );
  const known = new Map(kept.map(({ from_ms, to_ms, groups }) => [`${from_ms} ${to_ms}`, groups]));

  return async ({ from, to, isOver }: Span): Promise<ChunkGroup[]> => {
    const found = known.get(`${from} ${to}`);
    if (found) return found.map(unpacked);
    const [revision] = await postgres.ask(
      (sql) => sql<{ revision: string }[]>`SELECT revision FROM dragoman.revisions WHERE name = 'late_requests'`,
    );
    const groups = await postgres.ask((sql) => addUp(sql, { ...filters, from_ms: from, to_ms: to }, by), spanTimeoutMs);
    if (isOver && groups.length <= maxKeptGroups)
      // Unless a late row came meanwhile.
      await postgres.ask(
        (sql) => sql`INSERT INTO dragoman.statistics (query, from_ms, to_ms, groups)
          SELECT ${query}, ${from}::bigint, ${to}::bigint, ${JSON.stringify(groups.map(packed))}::text::jsonb
            FROM dragoman.revisions WHERE name = 'late_requests' AND revision = ${revision!.revision}::bigint
          ON CONFLICT DO NOTHING`,
      );
    return groups;
  };
}

interface KeptRow {
  from_ms: number;
  to_ms: number;
  groups: PackedGroup[];
}

interface PackedGroup {
  values: GroupValue[];
  errors: number;
  counts: number[];
  sums: number[];
  /** Place and number of those that are not 0. */
  buckets: [place: number, count: number][];
}

const packed = ({ values, aggregate: { errors, counts, sums, buckets } }: ChunkGroup): PackedGroup => ({
  values,
  errors,
  counts: [...counts],
  sums: [...sums],
  buckets: [...buckets.entries()].filter(([, count]) => count > 0),
});

function unpacked({ values, errors, counts, sums, buckets }: PackedGroup): ChunkGroup {
  const aggregate = openAggregate();
  for (const [place, count] of buckets) aggregate.buckets[place] = count;
  return {
    values,
    aggregate: { ...aggregate, errors, counts: Float64Array.from(counts), sums: Float64Array.from(sums) },
  };
}

function merge(groups: Map<string, ChunkGroup>, more: readonly ChunkGroup[]): void {
  for (const { values, aggregate } of more) {
    const id = JSON.stringify(values.map(({ label, from }) => [label, from]));
    const group = groups.get(id) ?? { values, aggregate: openAggregate() };
    addAggregate(group.aggregate, aggregate);
    groups.set(id, group);
  }
}

function listed(groups: ChunkGroup[], filters: Filters, by: Dimension[]): Statistics {
  const total = sumOf(groups);
  if (by.length === 0) return { by, totals: totalsOf(total), groups: [], others: null };
  groups.sort((one, other) => startOf(other) - startOf(one) || other.aggregate.counts[0]! - one.aggregate.counts[0]!);
  const others = groups.splice(maxGroups);
  return {
    by,
    totals: totalsOf(total),
    groups: groups.map(({ values, aggregate }) => ({
      key: groupKey(values),
      filters: narrowTo(filters, values),
      ...totalsOf(aggregate),
    })),
    others: others.length === 0 ? null : totalsOf(sumOf(others)),
  };
}

function sumOf(groups: readonly ChunkGroup[]): Aggregate {
  const total = openAggregate();
  for (const { aggregate } of groups) addAggregate(total, aggregate);
  return total;
}

const startOf = ({ values }: ChunkGroup) => values.find(({ from }) => from !== undefined)?.from ?? 0;
