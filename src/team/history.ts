/** The history in Postgres. What the database cannot take now waits on this machine: see row-writer.ts. */
import type { SQL } from "bun";
import { columnNames, type Entry, entryColumns, type Row } from "../books/history/entry";
import type { Filters, History, HistoryOptions, Page } from "../books/history/history";
import { pageOf } from "../books/history/page";
import { type PortionFilters, portionSums } from "../books/history/portions";
import { type PromptOrder, promptsOf } from "../books/history/prompts";
import type { Source } from "../books/history/sql";
import { type Dimension, largestSessionsOf, type Statistics, statisticsOf } from "../books/history/statistics";
import { type KeptRatio, maxRatios } from "../books/history/token-ratios";
import type { Totals } from "../books/history/totals";
import { failureReason, ProxyError } from "../lib/errors";
import { dayMs, hourMs } from "../lib/format";
import { isAwayError, sqlState } from "./away";
import { addPartitions, removeOldDays } from "./requests";
import { RowWriter, type RowWriterOptions } from "./row-writer";
import { addUpPeriods, atOneMoment, canceled, questionMs } from "./statistics";

interface TeamHistoryOptions extends Omit<HistoryOptions, "monotonic">, Pick<RowWriterOptions, "openQueue"> {
  postgres: RowWriterOptions["postgres"];
  /** Whether this server prunes: one of a team does. Read at each use. */
  isLeader(): boolean;
}

/** The columns of a row. Whole numbers of 64 bits come as text unless they are floating-point numbers, which are exact up to 2^53. */
const selected = [
  "id::float8 AS id",
  ...columnNames.map((name) => (entryColumns[name].sql.startsWith("INTEGER") ? `${name}::float8 AS ${name}` : name)),
].join(", ");

const pruneEvery = hourMs;
/** Milliseconds between two times that what is over is added up. */
const addUpEvery = hourMs / 6;
/** Milliseconds until the first, when a server that starts has other things to do. */
const firstAddUpAfter = 20_000;

export class TeamHistory implements History {
  readonly #options: TeamHistoryOptions;
  readonly #now: () => number;
  readonly #rows: RowWriter;
  readonly #timers: Timer[];
  #isAddingUp = false;

  constructor(options: TeamHistoryOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#rows = new RowWriter(options);
    this.#timers = [
      setInterval(() => void this.prune(), pruneEvery).unref(),
      setInterval(() => void this.#addUp(), addUpEvery).unref(),
      setTimeout(() => void this.prune(), 1_000).unref(),
      setTimeout(() => void this.#addUp(), firstAddUpAfter).unref(),
    ];
  }

  add(entry: Entry): void {
    this.#rows.add(entry);
  }

  flush(): Promise<boolean> {
    return this.#rows.flush();
  }

  list(filters: Filters, limit: number, cursor?: number): Promise<Page> {
    return this.#askOnce((source) => pageOf(source, selected, filters, limit, cursor));
  }

  after(id: number, limit: number): Promise<Row[]> {
    return this.#stored(`WHERE id > $1::bigint ORDER BY id LIMIT ${limit}`, id);
  }

  async get(requestId: string): Promise<Row | undefined> {
    return (await this.#stored("WHERE request_id = $1 LIMIT 1", requestId.replaceAll("\0", "")))[0];
  }

  async count(): Promise<number> {
    return (await this.#number("count(*)"))!;
  }

  async oldest(): Promise<number | undefined> {
    return (await this.#number("min(started_at_ms)")) ?? undefined;
  }

  async lastOf(filters: Filters): Promise<number | undefined> {
    return (await this.list(filters, 1)).items[0]?.started_at_ms;
  }

  async totals(filters: Filters): Promise<Totals> {
    return (await this.statistics(filters, [])).totals;
  }

  statistics(filters: Filters, by: Dimension[], signal?: AbortSignal): Promise<Statistics> {
    return this.#askOnce((source) => statisticsOf(source, filters, by), signal);
  }

  largestSessions(filters: Filters, count: number): ReturnType<History["largestSessions"]> {
    return this.#askOnce((source) => largestSessionsOf(source, filters, count));
  }

  prompts(filters: Filters, limit: number, cursor?: number, order?: PromptOrder): ReturnType<History["prompts"]> {
    return this.#askOnce((source) => promptsOf(source, filters, limit, cursor, order));
  }

  portions(filters: PortionFilters): ReturnType<History["portions"]> {
    return this.#askOnce((source) => portionSums(source, filters));
  }

  async prune(): Promise<void> {
    const { isLeader, postgres, maxRows, warn } = this.#options;
    if (!isLeader()) return;
    try {
      await removeOldDays(postgres, await this.#oldestKept(), maxRows());
      await addPartitions(postgres, [this.#now(), this.#now() + dayMs]);
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The request history could not be pruned (${failureReason(thrown)}).`);
    }
  }

  tokenRatios(): Promise<KeptRatio[]> {
    const read = (sql: SQL) =>
      sql<KeptRatio[]>`SELECT model, ratio, requests FROM dragoman.token_ratios ORDER BY learnt_at`;
    return this.#options.postgres.ask(async (sql) => [...(await read(sql))]);
  }

  /** Each server learns for itself, and the newest is kept: a server that starts begins with it. */
  async keepTokenRatio({ model, ratio, requests }: KeptRatio): Promise<void> {
    const write = (sql: SQL) => sql`
      INSERT INTO dragoman.token_ratios (model, ratio, requests) VALUES (${model}, ${ratio}, ${requests})
      ON CONFLICT (model) DO UPDATE SET ratio = ${ratio}, requests = ${requests}, learnt_at = now()`;
    const forget = (sql: SQL) => sql`
      DELETE FROM dragoman.token_ratios WHERE model NOT IN
        (SELECT model FROM dragoman.token_ratios ORDER BY learnt_at DESC LIMIT ${maxRatios})`;
    await this.#options.postgres.transact((sql) => write(sql).then(() => forget(sql)));
  }

  get queued(): number {
    return this.#rows.waiting;
  }

  get lost(): number {
    return this.#rows.lost;
  }

  get degraded(): boolean {
    return this.#rows.isFailing || this.#options.postgres.isAway;
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#rows.close();
  }

  /** After `close`: writes to the database what waits on the disk, as far as that is possible. */
  finish(): Promise<void> {
    return this.#rows.finish();
  }

  #ask<T>(question: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#answered(() => this.#options.postgres.ask(question, questionMs));
  }

  #stored(which: string, value: string | number): Promise<Row[]> {
    return this.#ask(async (sql) => [
      ...((await sql.unsafe(`SELECT ${selected} FROM dragoman.requests ${which}`, [value])) as Row[]),
    ]);
  }

  async #number(expression: string): Promise<number | null> {
    const [row] = await this.#ask((sql) =>
      sql.unsafe(`SELECT (${expression})::float8 AS number FROM dragoman.requests`),
    );
    return row.number;
  }

  #askOnce<T>(question: (source: Source) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#answered(() => atOneMoment(this.#options.postgres, question, { signal }));
  }

  /** @throws ProxyError `timeout`, `unable`, or `internal` with the cause. */
  async #answered<T>(read: () => Promise<T>): Promise<T> {
    // The answer includes entries that are still queued.
    await this.#rows.written();
    try {
      return await read();
    } catch (thrown) {
      if (thrown instanceof ProxyError) throw thrown;
      if (sqlState(thrown) === canceled) {
        const sentence = `The answer takes longer than ${questionMs / 1_000} seconds. Ask for fewer days, one key or one member.`;
        throw new ProxyError("timeout", sentence, { cause: thrown });
      }
      throw new ProxyError("internal", "The request history cannot be read now; see dragoman's log for the reason.", {
        cause: thrown,
      });
    }
  }

  /** Days that end before it are too old. Unix ms, by the clock of the database unless another one is given. */
  async #oldestKept(): Promise<number> {
    const { now, postgres, retentionDays } = this.#options;
    if (now) return now() - retentionDays() * dayMs;
    const [row] = await postgres.ask((sql) => sql<{ at: number }[]>`SELECT extract(epoch FROM now())::float8 AS at`);
    return row!.at * 1_000 - retentionDays() * dayMs;
  }

  async #addUp(): Promise<void> {
    const { isLeader, postgres, now, warn } = this.#options;
    if (!isLeader() || this.#isAddingUp) return;
    this.#isAddingUp = true;
    try {
      await addUpPeriods(postgres, now?.(), () => isLeader() && !this.#rows.isClosed);
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The request history could not be added up (${failureReason(thrown)}).`);
    }
    this.#isAddingUp = false;
  }
}
