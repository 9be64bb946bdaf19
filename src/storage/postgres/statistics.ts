/**
 * Totals and groups of requests, added up by Postgres. What was added up once is kept for each question, for all servers, so
 * that only the rows that came since are read again. The meaning is that of `history/statistics.ts`.
 */

import { dayMs, hourMs } from "../../format";
import { type Aggregate, addAggregate, openAggregate, totalsOf } from "../../history/aggregate";
import { type Dimension, groupKey, maxGroups, narrowTo } from "../../history/dimensions";
import type { Filters } from "../../history/filters";
import type { Statistics } from "../../history/statistics";
import type { ChunkGroup } from "./chunk";
import type { Postgres } from "./connection";
import { mergeGroups, openKeptStatistics, type Span } from "./kept-statistics";
import { settledBefore } from "./requests";

/** Spans that are added up at the same time: the others' questions need connections too. */
const atOnce = 3;
/** By the estimate of the database. */
const maxRowsAtOnce = 2_000_000;

/** From when on it is worth keeping what was read. */
export interface Worth {
  /** The last hours of a smaller day, by the estimate of the database, are read anew each time. */
  dayRows: number;
  /** What takes less time to read is read anew each time too. */
  ms: number;
}

/**
 * @param by Two dimensions at most.
 * @param now Unix ms.
 */
export async function statisticsIn(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  now: number,
  worth?: Worth,
): Promise<Statistics> {
  const groups = new Map<string, ChunkGroup>();
  const { spans, kept } = await openSpans(postgres, filters, by, now, worth);
  const left = [...spans];
  const worker = async () => {
    for (let span = left.shift(); span; span = left.shift()) mergeGroups(groups, await kept.read(span));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  mergeGroups(groups, await kept.newest());
  if (kept.isWorth) await rememberQuestion(postgres, filters, by);
  return listed([...groups.values()], filters, by);
}

async function openSpans(
  postgres: Postgres,
  filters: Filters,
  by: Dimension[],
  now: number,
  worth: Worth = { dayRows: 50_000, ms: 10 },
) {
  const spans = await spansOf(postgres, filters, now, worth);
  return { spans, kept: await openKeptStatistics(postgres, { filters, by, worthMs: worth.ms }, spans) };
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

/** At once. */
const maxQuestions = 50;

/**
 * Adds up what came since yesterday for each question that somebody asked in the last week, so that nobody waits for it. To be
 * called by one server of a team.
 */
export async function completeStatistics(postgres: Postgres, now: number, worth?: Worth): Promise<void> {
  const questions = await postgres.ask(
    (sql) => sql<{ question: { filters: Filters; by: Dimension[] } }[]>`SELECT question FROM dragoman.questions
      WHERE asked_at > now() - interval '7 days' ORDER BY asked_at DESC LIMIT ${maxQuestions}`,
  );
  const from_ms = (Math.floor(now / dayMs) - 1) * dayMs;
  for (const { question } of questions) {
    const { filters, by } = question;
    const { spans, kept } = await openSpans(postgres, { ...filters, from_ms }, by, now, worth);
    for (const span of spans) if (span.kind !== "part") await kept.read(span);
  }
}

/** The whole time that the filters leave, in spans that can be kept and others. */
async function spansOf(postgres: Postgres, filters: Filters, now: number, { dayRows }: Worth): Promise<Span[]> {
  const { from_ms, to_ms, member } = filters;
  const [bounds] = await postgres.ask(
    (sql) => sql<{ first: number | null; last: number | null; most: number | null }[]>`
      SELECT min(started_at_ms)::float8 AS first, max(started_at_ms)::float8 AS last,
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
  const settled = settledBefore(now);
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
