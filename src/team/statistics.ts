/** Statistics in Postgres: its words for the questions of `books/history/`, and how a leader adds up what is over. */
import type { SQL } from "bun";
import { bucketCount, bucketGrowth, exactBelow, firstMark } from "../books/history/durations";
import { cellInserts, hasWholeHours, type PeriodLength, periodLengths, periodsToAddUp } from "../books/history/rollup";
import type { Source, SqlDialect } from "../books/history/sql";
import type { Postgres } from "./connection";
import { settledBefore } from "./requests";

export const dialect: SqlDialect = {
  tables: {
    requests: "dragoman.requests",
    rollup: "dragoman.rollup",
    periods: "dragoman.rollup_periods",
    portions: "dragoman.portions",
  },
  isComplete: "true",
  parameter: (place, type) => `$${place}::${type}`,
  // Postgres stores no NUL.
  text: (value) => value.replaceAll("\0", "\ufffd"),
  texts: (parameter) => `jsonb_array_elements_text(${parameter}::jsonb)`,
  within({ parameter, count }, table, conditions, most) {
    // Of one piece the times are constants, so that the best index is known.
    const [piece, from] =
      count === 1 ? [`${parameter}::jsonb->0`, ""] : ["value", `FROM jsonb_array_elements(${parameter}::jsonb)`];
    const columns = ["first_ms", "last_ms", "span", "length"].map(
      (name, at) => `(${piece}->>${at})::bigint AS ${name}`,
    );
    // Without a limit Postgres would read the whole table and compare each row with each piece.
    const limit = most === undefined ? "OFFSET 0" : `ORDER BY each.id DESC LIMIT ${most}`;
    return `FROM (SELECT ${columns} ${from}) AS piece
      CROSS JOIN LATERAL (SELECT * FROM ${table} AS each WHERE ${conditions} ${limit}) AS each`;
  },
  mark: (column) => `CASE WHEN ${column} IS NULL THEN NULL
    WHEN ${column} < ${exactBelow} THEN chr((${firstMark + 1} + greatest(${column}, 0))::int)
    ELSE chr(least(${firstMark + bucketCount - 1}, ${firstMark + 1 + exactBelow}
      + floor(ln(${column} / ${exactBelow}.0::float8) / ${bucketGrowth}))::int) END`,
  join: (texts) => `string_agg(${texts}, '')`,
  further: (column) => `greatest(json_array_length(${column}::json) - 1, 0)`,
  number: (expression) => `(${expression})::float8`,
};

const sourceOf = (sql: SQL): Source => ({ dialect, rows: async (text, values) => sql.unsafe(text, [...values]) });

/** Milliseconds that a question may take. */
export const questionMs = 30_000;
/** Milliseconds more for the answer, so that Postgres itself ends what takes longer: nobody waits for it. */
const answerMs = 5_000;
/** Postgres' own code: a statement took longer than it may, or nobody waits for it. */
export const canceled = "57014";

/**
 * Asks something about one moment.
 * @param signal Ends it: nobody waits for the answer any more.
 * @throws Postgres' error 57014 if it takes longer than `ms`, or if it was ended.
 */
export const atOneMoment = <T>(
  postgres: Postgres,
  work: (source: Source) => Promise<T>,
  { ms = questionMs, signal }: { ms?: number; signal?: AbortSignal } = {},
): Promise<T> =>
  postgres.transact(
    async (sql) => {
      signal?.throwIfAborted();
      await sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`;
      // The best plan depends on the times; compiling it takes longer than it saves. Texts of marks are sorted in memory.
      const [own] = await sql<{ pid: number; began: string }[]>`SELECT pg_backend_pid() AS pid, now()::text AS began,
        set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
        set_config('enable_seqscan', 'off', true), set_config('work_mem', '32MB', true),
        set_config('statement_timeout', ${String(Math.max(1, Math.round(ms)))}, true)`;
      const cancel = () => void cancelTransaction(postgres, own!);
      signal?.addEventListener("abort", cancel);
      try {
        return await work(sourceOf(sql));
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    },
    ms + answerMs,
    false,
  );

/** Only this transaction: its connection may be another's by then. */
async function cancelTransaction(postgres: Postgres, { pid, began }: { pid: number; began: string }): Promise<void> {
  // The connections for pages may all be busy.
  await postgres.requests
    .ask(
      (sql) =>
        sql`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = ${pid} AND xact_start::text = ${began}`,
    )
    .catch(() => {}); // it ends by its own limit
}

/** Milliseconds that adding up one period may take. */
const addUpMs = 120_000;

/**
 * Adds up the hours that are over, and then the days. To be called by one server of a team.
 * @param now Unix ms, in place of the clock of the database.
 * @param isWanted Asked before each period: false ends it.
 */
export async function addUpPeriods(
  postgres: Postgres,
  now: number | undefined,
  isWanted: () => boolean,
): Promise<void> {
  const [clock] = await postgres.ask(
    (sql) => sql<{ now: number }[]>`SELECT extract(epoch FROM now())::float8 * 1000 AS now`,
  );
  const before = settledBefore(now ?? clock!.now);
  for (const length of periodLengths) {
    const left = await atOneMoment(postgres, (source) => periodsToAddUp(source, before, length));
    for (const hour of left) {
      if (!isWanted()) return;
      await addUp(postgres, hour, length);
    }
  }
}

const addUp = (postgres: Postgres, hour: number, length: PeriodLength): Promise<void> =>
  postgres.transact(async (sql) => {
    // Rows of these times that are being stored come first, and later ones wait: see `forget_periods`.
    await sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman rollup', 0)), set_config('jit', 'off', true)`;
    const period = sql`length = ${length}::smallint AND hour = ${hour}::bigint`;
    const [known] = await sql`SELECT 1 FROM dragoman.rollup_periods WHERE ${period}`;
    if (known || (length === 24 && !(await hasWholeHours(sourceOf(sql), hour)))) return;
    await sql`DELETE FROM dragoman.rollup WHERE ${period}`;
    for (const insert of cellInserts(dialect, dialect.tables.rollup, hour, length)) await sql.unsafe(insert);
    await sql`INSERT INTO dragoman.rollup_periods (length, hour) VALUES (${length}::smallint, ${hour}::bigint)`;
  }, addUpMs);
