/**
 * What each member has used since a time. Days and hours that are over are added up once for all members, and kept beside the
 * statistics: a late row forgets them as it forgets those. Statistics by member would do the same with all their durations, which
 * takes a second for 1,000 members.
 */
import type { SQL } from "bun";
import { dayMs, hourMs } from "../format";
import type { MemberUsage } from "../keys/member-usage";
import { sqlState } from "./away";
import type { Postgres } from "./connection";
import { addingUp, keepSum, lateRevision } from "./kept-statistics";
import { storedBounds } from "./request-queries";
import { settledBefore } from "./requests";

/** Unix ms, both ends included. */
interface Span {
  from: number;
  to: number;
}

/** Of one member: requests, sum and number of known credits, sum (in millionths) and number of known units, last start. */
type Sums = [requests: number, credits: number, priced: number, units: number, counted: number, last: number];

/** Milliseconds that a person waits for all of it. */
const defaultPatienceMs = 20_000;
/** Spans that are added up at the same time. */
const atOnce = 3;

/** Postgres' own code: a statement took longer than it may. */
const canceled = "57014";

const query = new Bun.CryptoHasher("sha256").update("usage of members, 1").digest();

const sums = `SELECT member, count(*) AS requests, coalesce(sum(nano_credits), 0) AS credits, count(nano_credits) AS priced,
    coalesce(sum(round(premium_units * 1e6)), 0)::bigint AS units, count(premium_units) AS counted, max(started_at_ms) AS last
  FROM dragoman.requests WHERE member IS NOT NULL AND started_at_ms BETWEEN $1::bigint AND $2::bigint GROUP BY member`;

const packedSums = `SELECT coalesce(jsonb_object_agg(member,
    jsonb_build_array(requests, credits, priced, units, counted, last)), '{}')::text AS groups FROM (${sums}) AS each`;

/**
 * @param since Unix ms.
 * @param now Unix ms, in place of the clock of the database.
 * @returns By the member's id; who has made no request is missing. Undefined if it takes longer than `patienceMs`: what was
 * added up until then is kept.
 */
export async function memberUsageIn(
  postgres: Postgres,
  since: number,
  patienceMs = defaultPatienceMs,
  now?: number,
): Promise<Map<string, MemberUsage> | undefined> {
  const deadline = performance.now() + patienceMs;
  try {
    return await usageIn((work) => addingUp(postgres, work, deadline - performance.now()), postgres, since, now);
  } catch (thrown) {
    if (sqlState(thrown) === canceled) return undefined;
    throw thrown;
  }
}

/** Asks something for which not more time is left than a person waits. */
type Ask = <T>(work: (sql: SQL) => Promise<T>) => Promise<T>;

async function usageIn(ask: Ask, postgres: Postgres, since: number, given?: number): Promise<Map<string, MemberUsage>> {
  const { first, last, now } = await ask(storedBounds);
  if (first === null || last === null) return new Map();
  const spans = spansBetween(Math.max(since, Math.floor(first / dayMs) * dayMs), last, settledBefore(given ?? now));
  const kept = await keptSums(ask, spans.over);
  const total = new Map<string, Sums>(Object.entries(kept.groups));
  const left = spans.over.filter(({ from }) => !kept.found.includes(from));
  const worker = async () => {
    for (let span = left.shift(); span; span = left.shift())
      for (const [member, each] of await addUpAndKeep(ask, postgres, span)) add(total, member, each);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (spans.rest) for (const [member, each] of await addUp(ask, spans.rest)) add(total, member, each);
  return new Map([...total].map(([member, each]) => [member, usageOf(each)]));
}

/** When the newest request of each of these members started, Unix ms. */
export async function lastRequestsOf(postgres: Postgres, ids: readonly string[]): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await postgres.ask(
    (sql) => sql<{ wanted: string; at: number | null }[]>`SELECT wanted, (SELECT started_at_ms::float8
        FROM dragoman.requests WHERE member = wanted ORDER BY id DESC LIMIT 1) AS at
      FROM jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb) AS each (wanted)`,
    defaultPatienceMs,
  );
  return new Map(rows.filter(({ at }) => at !== null).map(({ wanted, at }) => [wanted, at!]));
}

/** Whole days and hours that are over, and the rest. A part of an hour at the beginning is read with its hour's rest. */
function spansBetween(since: number, last: number, settled: number): { over: Span[]; rest?: Span } {
  const over: Span[] = [];
  let at = Math.floor(since / hourMs) * hourMs;
  for (;;) {
    const length = [dayMs, hourMs].find((each) => at % each === 0 && at + each <= settled);
    if (length === undefined || at > last) break;
    over.push({ from: at, to: at + length - 1 });
    at += length;
  }
  return at > last ? { over } : { over, rest: { from: at, to: last } };
}

interface Kept {
  /** Beginnings of the spans that were found. */
  found: number[];
  groups: Record<string, Sums>;
}

/** In one question, so that a late row forgets a span for both or for none. */
async function keptSums(ask: Ask, spans: readonly Span[]): Promise<Kept> {
  if (spans.length === 0) return { found: [], groups: {} };
  const [row] = await ask(
    (sql) => sql<{ kept: string }[]>`WITH kept AS MATERIALIZED (SELECT from_ms, groups
        FROM jsonb_to_recordset(${JSON.stringify(spans)}::text::jsonb) AS span("from" bigint, "to" bigint)
        JOIN dragoman.statistics ON query = ${query} AND from_ms = span."from" AND to_ms = span."to"),
      summed AS (SELECT key, jsonb_build_array(sum((value->>0)::float8), sum((value->>1)::float8),
          sum((value->>2)::float8), sum((value->>3)::float8), sum((value->>4)::float8), max((value->>5)::float8)) AS sums
        FROM kept, jsonb_each(groups) GROUP BY key)
      SELECT jsonb_build_object('found', coalesce((SELECT jsonb_agg(from_ms) FROM kept), '[]'),
        'groups', coalesce((SELECT jsonb_object_agg(key, sums) FROM summed), '{}'))::text AS kept`,
  );
  return JSON.parse(row!.kept);
}

const addUp = async (ask: Ask, { from, to }: Span): Promise<[string, Sums][]> =>
  Object.entries(JSON.parse(await packedIn(ask, from, to)));

async function packedIn(ask: Ask, from: number, to: number): Promise<string> {
  const [row] = await ask((sql) => sql.unsafe(packedSums, [from, to]) as Promise<{ groups: string }[]>);
  return row!.groups;
}

async function addUpAndKeep(ask: Ask, postgres: Postgres, span: Span): Promise<[string, Sums][]> {
  const { from, to } = span;
  const revision = await lateRevision(postgres);
  const groups = await packedIn(ask, from, to);
  await keepSum(postgres, { query, span, before: null, revision, groups });
  // The hours of a day are not asked for any more.
  if (to - from > hourMs)
    await postgres.ask(
      (sql) => sql`DELETE FROM dragoman.statistics
        WHERE query = ${query} AND from_ms >= ${from} AND to_ms <= ${to} AND to_ms - from_ms < ${hourMs}`,
    );
  return Object.entries(JSON.parse(groups));
}

function add(total: Map<string, Sums>, member: string, more: Sums): void {
  const known = total.get(member);
  if (!known) return void total.set(member, [...more]);
  for (let at = 0; at < 5; at += 1) known[at]! += more[at]!;
  known[5] = Math.max(known[5], more[5]);
}

const usageOf = ([requests, credits, priced, units, counted, last]: Sums): MemberUsage => ({
  requests,
  nanoCredits: priced === 0 ? null : credits,
  premiumUnits: counted === 0 ? null : units / 1e6,
  lastAt: last,
});
