/** What statistics have added up already: kept in the database for each question, and completed by the rows that came since. */
import { hourMs } from "../../format";
import { addAggregate, openAggregate } from "../../history/aggregate";
import type { Dimension, GroupValue } from "../../history/dimensions";
import type { Filters } from "../../history/filters";
import { type Arrived, addUp, type ChunkGroup } from "./chunk";
import type { Postgres } from "./connection";

/** Times are Unix ms, both ends included. */
export interface Span {
  from: number;
  to: number;
  /** `over`: no more rows come. `open`: rows still come. `part`: a part of a span, which is not kept. */
  kind: "over" | "open" | "part";
}

/** Milliseconds that one span may take. */
const spanTimeoutMs = 60_000;
/** Before that, so that Postgres ends what nobody waits for. */
const statementTimeoutMs = 55_000;
/** A span with more groups, such as one for each session, is not kept. */
const maxKeptGroups = 2_000;

export interface Question {
  filters: Filters;
  by: Dimension[];
  /** Less than an hour, and what is not over, is kept only if it takes so long to read. */
  worthMs: number;
}

export interface KeptStatistics {
  /** What a span adds up to; of an open one, without what `newest` returns. */
  read(span: Span): Promise<ChunkGroup[]>;
  /** The rows of open spans that were stored by transactions which were under way at the beginning, or later. */
  newest(): Promise<ChunkGroup[]>;
  /** Something that was read took long. */
  readonly isWorth: boolean;
}

/** @param spans Those that are going to be read. Open ones follow each other. */
export async function openKeptStatistics(
  postgres: Postgres,
  question: Question,
  spans: readonly Span[],
): Promise<KeptStatistics> {
  const query = hashOf(question);
  const { filters, by, worthMs } = question;
  const keepable = spans.filter(({ kind }) => kind !== "part");
  const open = spans.filter(({ kind }) => kind === "open");
  const known = new Map<string, KeptRow>();
  let watermark = 0;
  let tookLong = false;
  if (keepable.length > 0) {
    watermark = await watermarkOf(postgres);
    // After a restore into another cluster its transactions may begin with lower numbers.
    for (const row of await keptRows(postgres, query, keepable[0]!.from, keepable.at(-1)!.to))
      if ((row.arrived_before ?? 0) <= watermark) known.set(`${row.from_ms} ${row.to_ms}`, row);
  }

  const read = ({ from, to }: Pick<Span, "from" | "to">, arrived?: Arrived): Promise<ChunkGroup[]> =>
    postgres.transact(async (sql) => {
      // The best plan depends on the times.
      await sql`SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('statement_timeout', ${String(statementTimeoutMs)}, true)`;
      return addUp(sql, { ...filters, from_ms: from, to_ms: to }, by, arrived);
    }, spanTimeoutMs);

  /** @param before Undefined if the span is over. */
  const readRest = async (span: Span, before?: number): Promise<ChunkGroup[]> => {
    const stored = known.get(`${span.from} ${span.to}`);
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
    if (isKept && sum.length <= maxKeptGroups)
      await keep(postgres, { query, span, before: before ?? null, revision, groups: sum });
    return sum;
  };

  return {
    get isWorth() {
      return tookLong;
    },
    async read(span) {
      if (span.kind === "part") return read(span);
      if (span.kind === "open") return readRest(span, watermark);
      const found = known.get(`${span.from} ${span.to}`);
      return found?.arrived_before === null ? found.groups.map(unpacked) : readRest(span);
    },
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

interface KeptRow {
  from_ms: number;
  to_ms: number;
  /** Null if nothing is missing. */
  arrived_before: number | null;
  groups: PackedGroup[];
}

const keptRows = (postgres: Postgres, query: Uint8Array, first: number, last: number): Promise<KeptRow[]> =>
  postgres.ask(
    (sql) => sql<KeptRow[]>`SELECT from_ms::float8 AS from_ms, to_ms::float8 AS to_ms,
        arrived_before::float8 AS arrived_before, groups FROM dragoman.statistics
      WHERE query = ${query} AND from_ms >= ${first} AND to_ms <= ${last}`,
  );

/** Changes with each row that comes when its span is over. */
export async function lateRevision(postgres: Postgres): Promise<string> {
  const [row] = await postgres.ask(
    (sql) => sql<{ revision: string }[]>`SELECT revision FROM dragoman.revisions WHERE name = 'late_requests'`,
  );
  return row!.revision;
}

interface Sum {
  query: Uint8Array;
  span: Span;
  before: number | null;
  /** Before it was read, of a span that is over. */
  revision: string | null;
  groups: readonly ChunkGroup[];
}

/** Keeps it, unless a late row came meanwhile, or another server knows more. */
async function keep(postgres: Postgres, { query, span, before, revision, groups }: Sum): Promise<void> {
  const rows = JSON.stringify(groups.map(packed));
  await postgres.ask(
    // Locked, so that a late row that is being stored waits, and then forgets this too.
    (sql) => sql`INSERT INTO dragoman.statistics AS old (query, from_ms, to_ms, groups, arrived_before)
      SELECT ${query}, ${span.from}::bigint, ${span.to}::bigint, ${rows}::text::jsonb, ${before}::bigint
        FROM dragoman.revisions WHERE name = 'late_requests' AND revision = coalesce(${revision}::bigint, revision) FOR SHARE
      ON CONFLICT (query, from_ms, to_ms) DO UPDATE
        SET groups = excluded.groups, arrived_before = excluded.arrived_before
        WHERE old.arrived_before < coalesce(excluded.arrived_before, old.arrived_before + 1)`,
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

export function mergeGroups(groups: Map<string, ChunkGroup>, more: readonly ChunkGroup[]): void {
  for (const { values, aggregate } of more) {
    const id = JSON.stringify(values.map(({ label, from }) => [label, from]));
    const group = groups.get(id) ?? { values, aggregate: openAggregate() };
    addAggregate(group.aggregate, aggregate);
    groups.set(id, group);
  }
}
