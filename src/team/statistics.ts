/**
 * Totals and groups of requests, added up by Postgres. What was added up once is kept for each question, for all servers, so
 * that only the rows that came since are read again. The meaning is that of `history/statistics.ts`.
 */

import type { SQL } from "bun";
import { ProxyError } from "../errors";
import { dayMs, hourMs } from "../format";
import { type Aggregate, addAggregate, openAggregate, totalsOf } from "../history/aggregate";
import { type Dimension, groupKey, maxGroups, narrowTo } from "../history/dimensions";
import type { Filters } from "../history/filters";
import { type Group, type Statistics, usualQuestions } from "../history/statistics";
import { sqlState } from "./away";
import { addUp, addUpFirst, type ChunkGroup } from "./chunk";
import type { Postgres } from "./connection";
import { addingUp, mergeGroups, openKeptStatistics, type Span } from "./kept-statistics";
import { conditionsOf, storedBounds } from "./request-queries";
import { settledBefore } from "./requests";

/** Spans that are added up at the same time: the others' questions need connections too. */
const atOnce = 3;
/** Rows of a day that are added up at once, by the estimate of the database. */
const maxRowsAtOnce = 2_000_000;

/** From when on it is worth keeping what was read. */
export interface Worth {
  /** The last hours of a smaller day, by the estimate of the database, are read anew each time. */
  dayRows: number;
  /** What takes less time to read is read anew each time too. */
  ms: number;
  /** What is kept of a span is read at once with that of others, unless it has more bytes as Postgres stores it. */
  aheadBytes: number;
}

/**
 * @param by Two dimensions at most.
 * @param options.now Unix ms, in place of the clock of the database.
 * @param options.signal Ends it: nobody waits for the answer any more.
 */
export async function statisticsIn(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  { now, worth, signal }: { now?: number; worth?: Worth; signal?: AbortSignal } = {},
): Promise<Statistics> {
  if (by.includes("session")) return sessionsIn(postgres, filters, by, signal);
  const sums: Sums = { groups: new Map(), others: openAggregate() };
  const { spans, kept } = await openSpans(postgres, filters, by, now, worth);
  const left = [...spans];
  const worker = async () => {
    for (let span = left.shift(); span && !signal?.aborted; span = left.shift()) addSpan(sums, await kept.read(span));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  signal?.throwIfAborted();
  addSpan(sums, await kept.newest());
  if (kept.isWorth) await rememberQuestion(postgres, filters, by);
  return listed(sums, filters, by);
}

/** Milliseconds that a person waits for the sums of sessions. */
const sessionsMs = 30_000;

/**
 * Sessions are too many to keep what each adds up to, and a hundred times too many to read all their histograms for the few that
 * are listed.
 * @throws ProxyError `timeout`
 */
async function sessionsIn(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  signal?: AbortSignal,
): Promise<Statistics> {
  const work = async (sql: SQL) => {
    const { first, last } = await storedBounds(sql);
    if (first === null || last === null) return { groups: [], others: undefined };
    const from_ms = Math.max(filters.from_ms ?? first, first);
    const to_ms = Math.min(filters.to_ms ?? last, last);
    return addUpFirst(sql, { ...filters, from_ms, to_ms }, by, maxGroups);
  };
  const { groups, others = openAggregate() } = await addingUp(postgres, work, sessionsMs, signal).catch((thrown) => {
    if (sqlState(thrown) !== canceled) throw thrown;
    const sentence = `The sums of sessions take longer than ${sessionsMs / 1_000} seconds. Ask for fewer days, one key or one member.`;
    throw new ProxyError("timeout", sentence, { cause: thrown });
  });
  return listed({ groups: new Map(groups.map((group, at) => [String(at), group])), others }, filters, by);
}

/** Postgres' own code: a statement took longer than it may. */
const canceled = "57014";

interface Sums {
  groups: Map<string, ChunkGroup>;
  /** Of groups with few requests, where there are more than memory is for. */
  others: Aggregate;
}

/** At least as many groups with the most requests are held, of those that a span has brought. */
const minHeld = 4 * maxGroups;

function addSpan({ groups, others }: Sums, more: readonly ChunkGroup[]): void {
  mergeGroups(groups, more);
  if (groups.size <= 2 * minHeld) return;
  const smallest = [...groups].sort(([, one], [, other]) => requestsOf(other) - requestsOf(one)).slice(minHeld);
  for (const [id, { aggregate }] of smallest) {
    addAggregate(others, aggregate);
    groups.delete(id);
  }
}

const requestsOf = ({ aggregate }: ChunkGroup): number => aggregate.counts[0]!;

/** See `History.largestSessions`. All histograms of all sessions would take a hundred times as long. */
export const largestSessionsIn = (postgres: Postgres, filters: Filters, count: number): Promise<Group[]> =>
  addingUp(postgres, async (sql) => {
    const { sql: passes, values } = conditionsOf(filters);
    const rows = (await sql.unsafe(
      `SELECT session FROM dragoman.requests WHERE session IS NOT NULL AND cached_tokens IS NOT NULL AND ${passes}
       GROUP BY session ORDER BY sum(input_tokens) DESC NULLS LAST LIMIT ${count}`,
      values,
    )) as { session: string }[];
    const { from_ms = 0, to_ms = Number.MAX_SAFE_INTEGER } = filters;
    const sessions = rows.map(({ session }) => session);
    const groups = await addUp(sql, { ...filters, from_ms, to_ms }, ["session", "upstream_model"], { sessions });
    return groups.map((group) => groupOf(filters, group));
  });

async function openSpans(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  now: number | undefined,
  worth: Worth = { dayRows: 50_000, ms: 10, aheadBytes: 50_000 },
) {
  const spans = await spansOf(postgres, filters, now, worth);
  return {
    spans,
    kept: await openKeptStatistics(postgres, { filters, by, worthMs: worth.ms, aheadBytes: worth.aheadBytes }, spans),
  };
}

/** One that takes long is completed before it is asked again. One member's takes no time. */
async function rememberQuestion(postgres: Postgres, filters: Filters, by: Dimension[]): Promise<void> {
  const { from_ms: _, to_ms: __, ...others } = filters;
  if (typeof others.member === "string") return;
  const question = JSON.stringify({ filters: others, by });
  await postgres.ask(
    (sql) => sql`INSERT INTO dragoman.questions AS old (question) VALUES (${question}::text::jsonb)
      ON CONFLICT (question) DO UPDATE SET asked_at = now() WHERE old.asked_at < now() - interval '1 hour'`,
  );
}

/** Questions that are completed in one round: those that were asked last. */
const maxQuestions = 50;

/**
 * Adds up what is missing of what the pages ask, and what came since yesterday for each question that somebody asked in the last
 * week, so that nobody waits for it. To be called by one server of a team.
 * @param isWanted Asked before each span: false ends it.
 */
export async function completeStatistics(
  postgres: Postgres,
  now: number | undefined,
  isWanted: () => boolean,
  worth?: Worth,
): Promise<void> {
  const asked = await postgres.ask(
    (sql) => sql<{ question: KeptQuestion }[]>`SELECT question FROM dragoman.questions
      WHERE asked_at > now() - interval '7 days' ORDER BY asked_at DESC LIMIT ${maxQuestions}`,
  );
  const yesterday = (Math.floor((now ?? Date.now()) / dayMs) - 1) * dayMs;
  const questions: KeptQuestion[] = [
    ...usualQuestions.map((by) => ({ filters: {}, by: [...by] })),
    ...asked.map(({ question: { filters, by } }) => ({ filters: { ...filters, from_ms: yesterday }, by })),
  ];
  // An older version noted questions by session too, of which nothing is kept.
  for (const { filters, by } of questions.filter((each) => !each.by.includes("session"))) {
    const { spans, kept } = await openSpans(postgres, filters, by, now, worth);
    // The pages show the last days first.
    for (const span of spans.toReversed()) {
      if (!isWanted()) return;
      // Each time it would be added up anew, for nobody.
      if (kept.isTooLarge) break;
      if (span.kind !== "part" && !kept.isComplete(span)) await kept.read(span);
    }
  }
}

interface KeptQuestion {
  filters: Filters;
  by: Dimension[];
}

/** The whole time that the filters leave, in spans that can be kept and others. */
async function spansOf(
  postgres: Postgres,
  filters: Filters,
  now: number | undefined,
  { dayRows }: Worth,
): Promise<Span[]> {
  const { from_ms, to_ms, member } = filters;
  const [bounds] = await postgres.ask(
    (sql) => sql<{ now: number; first: number | null; last: number | null; most: number | null }[]>`
      SELECT extract(epoch FROM now())::float8 * 1000 AS now,
        min(started_at_ms)::float8 AS first, max(started_at_ms)::float8 AS last,
        (SELECT max(reltuples) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
          WHERE inhparent = 'dragoman.requests'::regclass)::float8 AS most
        FROM dragoman.requests`,
  );
  if (bounds?.first == null || bounds.last == null) return [];
  const from = Math.max(Math.ceil(from_ms ?? bounds.first), bounds.first);
  // A span that can be kept is a whole one, whatever the first and the last row are.
  const start = from_ms === undefined || from_ms < bounds.first ? Math.floor(from / dayMs) * dayMs : from;
  const end = to_ms === undefined ? Number.POSITIVE_INFINITY : Math.floor(to_ms);
  // One member's rows are few, and found by an index.
  const rows = typeof member === "string" ? 0 : (bounds.most ?? 0);
  // A day of many rows is added up by its hours, so that nothing takes long.
  const longest = rows > maxRowsAtOnce ? hourMs : dayMs;
  const shortest = rows < dayRows ? hourMs : blockMs;
  const settled = settledBefore(now ?? bounds.now);
  return cut({ start, last: Math.min(end, bounds.last), end, settled, longest, shortest });
}

/** Of an hour that is not asked for as a whole. */
const blockMs = hourMs / 12;

interface Cut {
  start: number;
  /** When the last row started. */
  last: number;
  end: number;
  settled: number;
  longest: number;
  shortest: number;
}

function cut({ start, last, end, settled, longest, shortest }: Cut): Span[] {
  const spans: Span[] = [];
  const lengths = [dayMs, hourMs, blockMs].filter((length) => length <= longest && length >= shortest);
  for (let at = start; at <= last; at = spans.at(-1)!.to + 1) {
    const isWhole = (length: number, until: number) => at % length === 0 && at + length - 1 <= until;
    const over = lengths.find((length) => isWhole(length, Math.min(end, settled)));
    const open = lengths.find((length) => length < dayMs && isWhole(length, end));
    if (over) spans.push({ from: at, to: at + over - 1, kind: "over" });
    else if (shortest < hourMs && open) spans.push({ from: at, to: at + open - 1, kind: "open" });
    // All that is left of the last hours, or up to the next span that can be kept.
    else if (shortest === hourMs && at >= settled - hourMs)
      spans.push({ from: at, to: Math.min(end, last), kind: "part" });
    else spans.push({ from: at, to: Math.min(end, (Math.floor(at / shortest) + 1) * shortest - 1), kind: "part" });
  }
  return spans;
}

function listed({ groups: held, others }: Sums, filters: Filters, by: Dimension[]): Statistics {
  const groups = [...held.values()];
  const total = openAggregate();
  for (const aggregate of [others, ...groups.map((group) => group.aggregate)]) addAggregate(total, aggregate);
  if (by.length === 0) return { by, totals: totalsOf(total), groups: [], others: null };
  groups.sort((one, other) => startOf(other) - startOf(one) || requestsOf(other) - requestsOf(one));
  for (const { aggregate } of groups.splice(maxGroups)) addAggregate(others, aggregate);
  return {
    by,
    totals: totalsOf(total),
    groups: groups.map((group) => groupOf(filters, group)),
    others: others.counts[0] === 0 ? null : totalsOf(others),
  };
}

const groupOf = (filters: Filters, { values, aggregate }: ChunkGroup): Group => ({
  key: groupKey(values),
  filters: narrowTo(filters, values),
  ...totalsOf(aggregate),
});

const startOf = ({ values }: ChunkGroup) => values.find(({ from }) => from !== undefined)?.from ?? 0;
