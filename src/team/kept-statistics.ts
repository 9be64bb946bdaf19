/** What statistics have added up already: kept in the database for each question, and completed by the rows that came since. */

import type { SQL } from "bun";
import { hourMs } from "../format";
import { addAggregate, openAggregate } from "../history/aggregate";
import type { Dimension, GroupValue } from "../history/dimensions";
import type { Filters } from "../history/filters";
import { addUp, type ChunkGroup, type RowsWanted } from "./chunk";
import type { Postgres } from "./connection";

/** Times are Unix ms, both ends included. */
export interface Span {
  from: number;
  to: number;
  /** `over`: no more rows come. `open`: rows still come. `part`: a part of a span, which is not kept. */
  kind: "over" | "open" | "part";
}

/** Milliseconds that one span may take. */
const spanMs = 55_000;
/** Milliseconds more for the answer, so that Postgres itself ends what takes longer: nobody waits for it. */
const answerMs = 5_000;
/** A span with more groups, such as one for each session, is not kept. */
const maxKeptGroups = 10_000;

export interface Question {
  filters: Filters;
  by: Dimension[];
  /** Less than an hour, and what is not over, is kept only if it takes so long to read. */
  worthMs: number;
  /** Of what is kept, in bytes as Postgres stores it: more is read only when its span is. */
  aheadBytes: number;
}

export interface KeptStatistics {
  /** What a span adds up to; of an open one, without what `newest` returns. */
  read(span: Span): Promise<ChunkGroup[]>;
  /** The rows of open spans that were stored by transactions which were under way at the beginning, or later. */
  newest(): Promise<ChunkGroup[]>;
  /** Whether all of a span is kept. */
  isComplete(span: Span): boolean;
  /** Something that was read has more groups than are kept. */
  readonly isTooLarge: boolean;
  /** Something that was read took long. */
  readonly isWorth: boolean;
}

/**
 * Adds something up in a transaction.
 * @param ms For how long at most.
 * @param signal Ends it: nobody waits for the answer any more.
 * @throws Postgres' error 57014 if that takes longer, or if it was ended.
 */
export const addingUp = <T>(
  postgres: Postgres,
  work: (sql: SQL) => Promise<T>,
  ms = spanMs,
  signal?: AbortSignal,
): Promise<T> =>
  postgres.transact(
    async (sql) => {
      signal?.throwIfAborted();
      // The best plan depends on the times.
      const [own] = await sql<{ pid: number; began: string }[]>`SELECT pg_backend_pid() AS pid, now()::text AS began,
      set_config('plan_cache_mode', 'force_custom_plan', true),
      set_config('statement_timeout', ${String(Math.max(1, Math.round(ms)))}, true)`;
      const cancel = () => void cancelTransaction(postgres, own!);
      signal?.addEventListener("abort", cancel);
      try {
        return await work(sql);
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    },
    ms + answerMs,
    false,
  );

/** Only this transaction: its connection may be another's by then. */
async function cancelTransaction(postgres: Postgres, { pid, began }: { pid: number; began: string }): Promise<void> {
  await postgres
    .ask(
      (sql) =>
        sql`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = ${pid} AND xact_start::text = ${began}`,
    )
    .catch(() => {}); // it ends by its own limit
}

/** @param spans Those that are going to be read. Open ones follow each other. */
export async function openKeptStatistics(
  postgres: Postgres,
  question: Question,
  spans: readonly Span[],
): Promise<KeptStatistics> {
  const query = hashOf(question);
  const { filters, by, worthMs, aheadBytes } = question;
  const keepable = spans.filter(({ kind }) => kind !== "part");
  const open = spans.filter(({ kind }) => kind === "open");
  const known = new Map<string, KeptRow>();
  let watermark = 0;
  let tookLong = false;
  let isTooLarge = false;
  if (keepable.length > 0) {
    watermark = await watermarkOf(postgres);
    // After a restore into another cluster its transactions may begin with lower numbers.
    for (const row of await keptRows(postgres, query, keepable, aheadBytes))
      if ((row.arrived_before ?? 0) <= watermark) known.set(nameOf({ from: row.from_ms, to: row.to_ms }), row);
  }

  const read = ({ from, to }: Pick<Span, "from" | "to">, wanted?: RowsWanted): Promise<ChunkGroup[]> =>
    addingUp(postgres, (sql) => addUp(sql, { ...filters, from_ms: from, to_ms: to }, by, wanted));
  /** Undefined if nothing is kept of the span, or if another server has completed it beyond the watermark. */
  const keptOf = async (span: Span): Promise<KeptGroups | undefined> => {
    const row = known.get(nameOf(span));
    if (!row) return undefined;
    const { arrived_before, groups } = row.groups ? row : ((await keptRow(postgres, query, span)) ?? row);
    return groups && (arrived_before ?? 0) <= watermark ? { arrived_before, groups } : undefined;
  };

  /** @param before Undefined if the span is over. */
  const readRest = async (span: Span, before?: number): Promise<ChunkGroup[]> => {
    const stored = await keptOf(span);
    if (before === undefined && stored?.arrived_before === null) return stored.groups.map(unpacked);
    // By the clock of another server the span may be over already, and complete.
    const found = before !== undefined && stored?.arrived_before === null ? undefined : stored;
    const revision = before === undefined ? await lateRevision(postgres) : null;
    const groups = new Map<string, ChunkGroup>();
    const begun = performance.now();
    mergeGroups(groups, await read(span, { from: found?.arrived_before ?? undefined, before }));
    const took = performance.now() - begun;
    tookLong ||= took >= worthMs;
    const isKept = took >= worthMs || (before === undefined && span.to - span.from >= hourMs - 1);
    if (found) mergeGroups(groups, found.groups.map(unpacked));
    const sum = [...groups.values()];
    isTooLarge ||= sum.length > maxKeptGroups;
    if (isKept && sum.length <= maxKeptGroups)
      await keepSum(postgres, {
        query,
        span,
        before: before ?? null,
        revision,
        groups: JSON.stringify(sum.map(packed)),
      });
    return sum;
  };

  return {
    get isTooLarge() {
      return isTooLarge;
    },
    get isWorth() {
      return tookLong;
    },
    async read(span) {
      if (span.kind === "part") return read(span);
      if (span.kind === "open") return readRest(span, watermark);
      return readRest(span);
    },
    isComplete: (span) => known.get(nameOf(span))?.arrived_before === null,
    newest: async () =>
      open.length === 0 ? [] : read({ from: open[0]!.from, to: open.at(-1)!.to }, { from: watermark }),
  };
}

/** The same for all servers, whatever the time. */
function hashOf({ filters, by }: Question): Uint8Array {
  const { from_ms: _, to_ms: __, ...others } = filters;
  const zone = by.some((dimension) => dimension === "hour" || dimension === "day")
    ? Intl.DateTimeFormat().resolvedOptions().timeZone
    : undefined;
  const named = Object.entries(others).filter(([, value]) => value !== undefined);
  const text = JSON.stringify([2, named.toSorted(([one], [other]) => (one < other ? -1 : 1)), by, zone]);
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

/** All transactions before it have ended, so what they stored does not change any more. */
async function watermarkOf(postgres: Postgres): Promise<number> {
  const [row] = await postgres.ask(
    (sql) => sql<{ xmin: number }[]>`SELECT pg_snapshot_xmin(pg_current_snapshot())::text::float8 AS xmin`,
  );
  return row!.xmin;
}

const nameOf = ({ from, to }: Pick<Span, "from" | "to">) => `${from} ${to}`;

interface KeptGroups {
  /** Null if nothing is missing. */
  arrived_before: number | null;
  groups: PackedGroup[];
}

interface KeptRow extends Pick<KeptGroups, "arrived_before"> {
  from_ms: number;
  to_ms: number;
  /** Null if they are too many to read ahead. */
  groups: PackedGroup[] | null;
}

const keptRows = (
  postgres: Postgres,
  query: Uint8Array,
  spans: readonly Span[],
  aheadBytes: number,
): Promise<KeptRow[]> =>
  postgres.ask(
    (sql) => sql<KeptRow[]>`SELECT from_ms::float8 AS from_ms, to_ms::float8 AS to_ms,
        arrived_before::float8 AS arrived_before,
        CASE WHEN pg_column_size(groups) <= ${aheadBytes}::int THEN groups END AS groups FROM dragoman.statistics
      WHERE query = ${query} AND from_ms >= ${spans[0]!.from} AND to_ms <= ${spans.at(-1)!.to}`,
  );

/** Undefined if a late row has made it forgotten. */
async function keptRow(postgres: Postgres, query: Uint8Array, { from, to }: Span): Promise<KeptGroups | undefined> {
  const [row] = await addingUp(
    postgres,
    (sql) => sql<KeptGroups[]>`SELECT arrived_before::float8 AS arrived_before, groups FROM dragoman.statistics
      WHERE query = ${query} AND from_ms = ${from}::bigint AND to_ms = ${to}::bigint`,
  );
  return row;
}

/** Changes with each row that comes when its span is over. */
export async function lateRevision(postgres: Postgres): Promise<string> {
  const [row] = await postgres.ask(
    (sql) => sql<{ revision: string }[]>`SELECT revision FROM dragoman.revisions WHERE name = 'late_requests'`,
  );
  return row!.revision;
}

interface Sum {
  /** The hash of the question. */
  query: Uint8Array;
  span: Pick<Span, "from" | "to">;
  /** What arrived from this transaction on is missing; null if the span is over. */
  before: number | null;
  /** `lateRevision` before it was read, of a span that is over. */
  revision: string | null;
  /** JSON, which the question gives its meaning. */
  groups: string;
}

/** Keeps it, unless a late row came meanwhile, or another server knows as much. */
export async function keepSum(postgres: Postgres, { query, span, before, revision, groups }: Sum): Promise<void> {
  await postgres.ask(
    // Locked, so that a late row that is being stored waits, and then forgets this too.
    (sql) => sql`INSERT INTO dragoman.statistics AS old (query, from_ms, to_ms, groups, arrived_before)
      SELECT ${query}, ${span.from}::bigint, ${span.to}::bigint, ${groups}::text::jsonb, ${before}::bigint
        FROM dragoman.revisions WHERE name = 'late_requests' AND revision = coalesce(${revision}::bigint, revision) FOR SHARE
      ON CONFLICT (query, from_ms, to_ms) DO UPDATE
        SET groups = excluded.groups, arrived_before = excluded.arrived_before
        WHERE old.arrived_before < coalesce(excluded.arrived_before, old.arrived_before + 1)`,
    spanMs,
  );
}

interface PackedGroup {
  values: GroupValue[];
  errors: number;
  counts: number[];
  sums: number[];
  /** Place and number of those that are not 0. */
  buckets: [place: number, count: number][];
}

function packed({ values, aggregate: { errors, counts, sums, buckets: all } }: ChunkGroup): PackedGroup {
  const buckets: PackedGroup["buckets"] = [];
  for (let place = 0; place < all.length; place += 1) if (all[place]! > 0) buckets.push([place, all[place]!]);
  return { values, errors, counts: Array.from(counts), sums: Array.from(sums), buckets };
}

function unpacked({ values, errors, counts, sums, buckets }: PackedGroup): ChunkGroup {
  const aggregate = openAggregate();
  for (const [place, count] of buckets) aggregate.buckets[place] = count;
  return {
    values,
    aggregate: { ...aggregate, errors, counts: Float64Array.from(counts), sums: Float64Array.from(sums) },
  };
}

export function mergeGroups(groups: Map<string, ChunkGroup>, more: readonly ChunkGroup[]): void {
  for (const { values, aggregate } of more) {
    const id = JSON.stringify(values.map(({ label, from }) => [label, from]));
    const group = groups.get(id) ?? { values, aggregate: openAggregate() };
    addAggregate(group.aggregate, aggregate);
    groups.set(id, group);
  }
}
