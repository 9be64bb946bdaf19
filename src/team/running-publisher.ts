/** Writes what runs here to the table that pages of other servers read, for as long as somebody looks there. */
import { FreshRuns } from "../awaitable";
import type { Entry } from "../history/entry";
import type { InFlight, InFlightEvent } from "../live/in-flight";
import { isAwayError } from "./away";
import type { ServerParts } from "./parts";

export interface RunningParts extends ServerParts {
  inFlight: InFlight;
}

/** A hint to look at the table: somebody looks, or wants a request to be cancelled. */
export const lookTopic = "running";
/** Milliseconds between two writes. */
export const writeEvery = 500;
/** Milliseconds between a cancellation and the next write: the history has the row by then. */
const cancelledAfter = 250;
/** Seconds for which the row of a request that has ended stays. */
const keepEnded = 10;

interface WrittenRow {
  is_watched: boolean;
  /** Requests of this server that somebody wants to be cancelled. */
  cancelled: { id: string; by: "owner" | "member" }[];
}

export class RunningPublisher {
  readonly #parts: RunningParts;
  /** Ids of requests that have changed since they were written; with the entry if they have ended. */
  readonly #changed = new Map<string, Entry | undefined>();
  #unwatch: (() => void) | undefined;
  #timer: Timer | undefined;
  /** The write that is under way may have begun before a hint came. */
  readonly #writes = new FreshRuns(() => this.#write());
  readonly #unfollow: () => void;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    this.#unfollow = parts.changes.on(lookTopic, () => this.#begin());
    // A database that crashed has emptied the table.
    parts.postgres.whenBack(() => this.#unwatch && this.#changeAll());
  }

  /** Removes what was written. */
  async close(): Promise<void> {
    this.#unfollow();
    const wasWatched = this.#unwatch !== undefined;
    this.#stop();
    if (this.#writes.isRunning) await this.#writes.run();
    const { postgres, replica } = this.#parts;
    // Without the database, others notice by its silence that this server is gone.
    if (wasWatched)
      await postgres.ask((sql) => sql`DELETE FROM dragoman.running WHERE replica = ${replica}`).catch(() => {});
  }

  #begin(): void {
    if (!this.#unwatch) {
      this.#changeAll();
      this.#unwatch = this.#parts.inFlight.watch((event) => this.#note(event));
    }
    this.#schedule(0);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#changed.clear();
  }

  #changeAll(): void {
    for (const { request_id: id } of this.#parts.inFlight.running()) this.#changed.set(id, undefined);
  }

  #note(event: InFlightEvent): void {
    if (event.type === "running") this.#changed.set(event.running.request_id, undefined);
    else this.#changed.set(event.entry.request_id, event.entry);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#writes.run(), ms).unref();
  }

  async #write(): Promise<void> {
    const { inFlight, logger } = this.#parts;
    const changed = [...this.#changed];
    this.#changed.clear();
    const rows = changed.flatMap(([id, entry]) => {
      const shown = entry ?? inFlight.find(id);
      return shown ? [{ request_id: id, body: JSON.stringify(shown), has_ended: entry !== undefined }] : [];
    });
    try {
      const { is_watched: isWatched, cancelled } = await this.#store(rows);
      for (const { id, by } of cancelled) inFlight.cancel(id, by);
      if (!this.#unwatch) return;
      if (isWatched) this.#schedule(cancelled.length > 0 ? cancelledAfter : writeEvery);
      else if (!this.#writes.hasNext) this.#stop();
    } catch (thrown) {
      if (!isAwayError(thrown)) logger.error("Other servers could not be shown what runs here.", thrown);
      for (const [id, entry] of changed) if (!this.#changed.has(id)) this.#changed.set(id, entry);
      if (this.#unwatch) this.#schedule(writeEvery);
    }
  }

  async #store(rows: object[]): Promise<WrittenRow> {
    const { postgres, replica } = this.#parts;
    const [written] = await postgres.ask(
      (sql) => sql<WrittenRow[]>`WITH watch AS (
          SELECT coalesce((SELECT until > now() FROM dragoman.watch), false) AS is_watched),
        written AS (
          INSERT INTO dragoman.running (request_id, replica, body, has_ended)
          SELECT request_id, ${replica}::uuid, body, has_ended FROM watch,
            json_to_recordset(${JSON.stringify(rows)}::text::json) AS given(request_id text, body text, has_ended boolean)
          WHERE is_watched ON CONFLICT (request_id) DO UPDATE
            SET body = excluded.body, has_ended = excluded.has_ended, changed_at = now()),
        removed AS (
          DELETE FROM dragoman.running USING watch WHERE replica = ${replica}
            AND (NOT is_watched OR (has_ended AND changed_at < now() - make_interval(secs => ${keepEnded})))),
        shown AS (UPDATE dragoman.replicas SET shown_at = now() WHERE id = ${replica})
      SELECT is_watched, coalesce((SELECT jsonb_agg(jsonb_build_object('id', request_id, 'by', cancel_for))
        FROM dragoman.running WHERE replica = ${replica} AND cancel_for IS NOT NULL AND NOT has_ended), '[]') AS cancelled
      FROM watch`,
    );
    return written!;
  }
}
