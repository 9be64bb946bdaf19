/** What pages read of the ledger in Postgres, and what it takes over of a data folder. */
import type { Budget } from "../people/budgets/budgets";
import { type AmountKey, budgetId, storedAmount, type UsedPeriod } from "../people/budgets/entries";
import { holderKindOf } from "../people/budgets/holders";
import type { HolderPage, HolderQuery, HolderRow } from "../people/budgets/ledger";
import { spanOf } from "../people/budgets/period";
import type { Postgres } from "./connection";

/** What a request used in one period, as stored. */
export interface Settlement extends Omit<AmountKey, "start"> {
  start_ms: number;
  amount: number;
  unknown: number;
}

/** Milliseconds that a page may wait for the amounts of many. */
const readTimeoutMs = 30_000;

/** A key as the functions of the database take it. */
export const periodOf = ({ start: start_ms, ...key }: AmountKey) => ({ ...key, start_ms });

export async function readHolders(
  postgres: Postgres,
  budget: Budget,
  { limit, offset = 0, atLeast = 0, limits = {} }: HolderQuery,
  now: number,
): Promise<HolderPage> {
  const kind = holderKindOf(budget)!;
  const cap = storedAmount(budget, budget.limit);
  const rows = await postgres.ask(
    (sql) => sql<(HolderRow & { count: number })[]>`SELECT member, item, used::float8 AS used,
      reserved::float8 AS reserved, unknown::float8 AS unknown, (count(*) OVER ())::float8 AS count
      FROM dragoman.ledger LEFT JOIN jsonb_each_text(${JSON.stringify(limits)}::text::jsonb) AS own(id, cap)
        ON own.id = lower(member || '/' || item)
      WHERE budget = ${budgetId(budget)} AND start_ms = ${spanOf(budget.per, now).start}::bigint
        AND kind = ${kind}
        AND used + reserved + unknown > 0 AND used >= ${atLeast}::float8 * coalesce(cap::float8, ${cap}::float8)
      ORDER BY used / coalesce(cap::float8, ${cap}::float8) DESC, member, item LIMIT ${limit} OFFSET ${offset}`,
    readTimeoutMs,
  );
  return { count: rows[0]?.count ?? 0, rows: rows.map(({ count: _, ...row }) => row) };
}

export async function takeOverPeriods(postgres: Postgres, periods: readonly UsedPeriod[]): Promise<void> {
  const rows = JSON.stringify(periods.map(({ key, amount, unknown }) => ({ ...periodOf(key), amount, unknown })));
  await postgres.ask(
    (sql) => sql`INSERT INTO dragoman.ledger (budget, kind, member, item, start_ms, used, unknown)
      SELECT budget, kind, member, item, start_ms, amount, unknown FROM jsonb_to_recordset(${rows}::text::jsonb)
        AS given(budget text, kind text, member text, item text, start_ms bigint, amount bigint, unknown bigint)
      ON CONFLICT (budget, kind, member, item, start_ms) DO UPDATE SET used = greatest(ledger.used, excluded.used),
        unknown = greatest(ledger.unknown, excluded.unknown)`,
  );
}
