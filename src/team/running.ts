/**
 * The running requests of all servers of a team. While somebody looks, each server writes what runs there to a table
 * (`RunningPublisher`), and the server whose page is open reads what the others wrote.
 */
import { FreshRuns } from "../awaitable";
import { ProxyError } from "../errors";
import { plural } from "../format";
import type { Entry, InFlightRequest } from "../history/entry";
import {
  cancelHere,
  fairShare,
  findHere,
  isOf,
  type RunningList,
  type RunningRequests,
  type RunningWatcher,
  Watchers,
} from "../live/running-requests";
import { isAwayError, orAway } from "./away";
import { notification } from "./changes";
import { aliveForMs } from "./replica";
import { lookTopic, type RunningParts, RunningPublisher, writeEvery } from "./running-publisher";

/** A request of another server, as that server wrote it. */
interface Shown {
  replica: string;
  body: string;
  request: InFlightRequest;
  /** Such a request is remembered for as long as its row is read, so that its end is told once. */
  hasEnded: boolean;
}

interface ReadRow {
  /** Seconds by the clock of the database. */
  now: number;
  /** The other servers that are alive, and when each wrote last. */
  servers: { id: string; shown: number }[];
  requests: { id: string; replica: string; body: string; has_ended: boolean }[];
}

/** Requests that are listed at most, of all servers together. */
const maxListed = 400;
/** Milliseconds that a look waits for the other servers. */
const lookMs = 1_000;
/** The first and the longest pause between two reads of a look, ms. */
const [firstPause, longestPause] = [5, 100];
/** Milliseconds for which the list is kept current after a look. */
const lingerMs = 1_000;
/** Seconds for which the others go on writing after each read. */
const watchSeconds = 3;
/** A server that has not written for so many seconds is silent, and what it wrote before does not count. */
const silentAfter = 3.5;
/** Seconds of changes that are read again with each read: a write becomes visible a moment after its time. */
const overlap = 6;

export class TeamRunning implements RunningRequests {
  readonly #parts: RunningParts;
  readonly #publisher: RunningPublisher;
  readonly #watchers: Watchers;
  /** The requests that the others wrote. */
  readonly #others = new Map<string, Shown>();
  /** The servers that wrote lately. */
  #writing = new Set<string>();
  #silent = 0;
  #gap: string | undefined = notAnswered;
  #watching = 0;
  /** When the list need not be kept current any more, by the monotonic clock, ms. */
  #currentUntil = 0;
  #timer: Timer | undefined;
  #looking: Promise<void> | undefined;
  readonly #reads = new FreshRuns(() => this.#read());
  #isHinting = false;
  /** When the others were read last, by the monotonic clock, ms. */
  #readAt = Number.NEGATIVE_INFINITY;
  /** Changes are read from here on, in seconds by the clock of the database; 0 for all. */
  #since = 0;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    this.#publisher = new RunningPublisher(parts);
    this.#watchers = new Watchers(parts.inFlight);
    // A database that crashed has emptied the table.
    parts.postgres.whenBack(() => this.#forgetAll(notAnswered));
  }

  async list(member?: string): Promise<RunningList> {
    if (performance.now() - this.#readAt > 2 * writeEvery || this.#gap !== undefined) await this.#tryLook();
    this.#stayCurrent();
    return this.known(member);
  }

  known(member?: string): RunningList {
    const { inFlight, postgres } = this.#parts;
    const others = postgres.isAway ? [] : [...this.#others.values()].filter(({ hasEnded }) => !hasEnded);
    const all = [...inFlight.running(), ...others.map(({ request }) => request)]
      .filter(isOf(member))
      .sort((one, other) => one.started_at_ms - other.started_at_ms);
    return { running: fairShare(all, maxListed), count: all.length, gap: postgres.isAway ? awayGap : this.#gap };
  }

  findKnown(requestId: string, member?: string): InFlightRequest | undefined {
    const elsewhere = this.#others.get(requestId);
    const found = this.#parts.inFlight.find(requestId) ?? (elsewhere?.hasEnded ? undefined : elsewhere?.request);
    return found && isOf(member)(found) ? found : undefined;
  }

  async find(requestId: string, member?: string): Promise<InFlightRequest | undefined> {
    const here = findHere(this.#parts.inFlight, requestId, member);
    return here ?? orAway(this.#findElsewhere(requestId, member), "It is unknown what other servers run.");
  }

  async cancel(requestId: string, member?: string): Promise<boolean> {
    if (cancelHere(this.#parts.inFlight, requestId, member)) return true;
    const cancelling = this.#cancelElsewhere(requestId, member);
    return orAway(cancelling, "What other servers run cannot be cancelled from here.");
  }

  watch(watcher: RunningWatcher, member?: string): () => void {
    const leave = this.#watchers.add(watcher, member);
    this.#watching += 1;
    void this.#tryLook();
    return () => {
      leave();
      this.#watching -= 1;
      this.#stayCurrent();
    };
  }

  close(): void {
    this.#watchers.close();
  }

  /** Removes what this server wrote. */
  async leave(): Promise<void> {
    clearInterval(this.#timer);
    await this.#publisher.close();
  }

  async #findElsewhere(requestId: string, member: string | undefined): Promise<InFlightRequest | undefined> {
    await this.#look();
    const found = this.findKnown(requestId, member);
    if (!found && this.#silent > 0) throw unanswered(this.#silent);
    return found;
  }

  async #cancelElsewhere(requestId: string, member: string | undefined): Promise<boolean> {
    if (!(await this.#findElsewhere(requestId, member))) return false;
    const by = member === undefined ? "owner" : "member";
    await this.#parts.postgres.ask(
      (sql) => sql`UPDATE dragoman.running SET cancel_for = ${by} WHERE request_id = ${requestId}`,
    );
    await this.#readUntil(() => !this.findKnown(requestId));
    if (this.findKnown(requestId)) throw unanswered(1);
    return true;
  }

  async #tryLook(): Promise<void> {
    await this.#look().catch((thrown) => this.#report(thrown));
  }

  /** Lets the other servers write, and waits for a second at most until all have. @throws ProxyError if the database is away. */
  #look(): Promise<void> {
    this.#stayCurrent();
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    let asked: number | undefined;
    await this.#readUntil((row) => {
      asked ??= row.now;
      return this.#countSilent(row, asked) === 0;
    });
  }

  async #readUntil(isEnough: (row: ReadRow) => boolean): Promise<void> {
    const deadline = performance.now() + lookMs;
    this.#isHinting = true;
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      if (isEnough(await this.#reads.run()) || performance.now() > deadline) return;
      await Bun.sleep(pause);
    }
  }

  #stayCurrent(): void {
    this.#currentUntil = performance.now() + lingerMs;
    this.#timer ??= setInterval(() => void this.#tick(), writeEvery).unref();
  }

  async #tick(): Promise<void> {
    if (this.#watching === 0 && performance.now() > this.#currentUntil) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return this.#forgetAll(notAnswered);
    }
    if (this.#looking || this.#reads.isRunning) return;
    // A server that is silent may not have heard that somebody looks.
    this.#isHinting = this.#silent > 0 || this.#since === 0;
    try {
      const row = await this.#reads.run();
      this.#countSilent(row, row.now - silentAfter);
    } catch (thrown) {
      this.#report(thrown);
    }
  }

  /** @param since Seconds: a server that has not written since then is silent. */
  #countSilent({ servers }: ReadRow, since: number): number {
    this.#silent = servers.filter(({ shown }) => shown < since).length;
    this.#setGap(this.#silent === 0 ? undefined : silentGap(this.#silent, servers.length));
    return this.#silent;
  }

  #report(thrown: unknown): void {
    if (!isAwayError(thrown)) this.#parts.logger.error("What other servers run could not be read.", thrown);
    this.#forgetAll(awayGap);
  }

  #setGap(gap: string | undefined): void {
    if (gap === this.#gap) return;
    this.#gap = gap;
    this.#watchers.emit({ type: "renewed" });
  }

  #forgetAll(gap: string): void {
    this.#others.clear();
    this.#since = 0;
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#setGap(gap);
  }

  async #read(): Promise<ReadRow> {
    const { postgres, replica } = this.#parts;
    const hint = this.#isHinting;
    this.#isHinting = false;
    const since = this.#since;
    const [row] = await postgres.ask(
      (sql) => sql<ReadRow[]>`WITH watch AS (
          INSERT INTO dragoman.watch (until) VALUES (now() + make_interval(secs => ${watchSeconds}))
          ON CONFLICT (singleton) DO UPDATE SET until = excluded.until),
        hint AS (SELECT ${notification(sql, { topic: lookTopic })} WHERE ${hint}::boolean)
      SELECT extract(epoch FROM now())::float8 AS now, (SELECT count(*) FROM hint) AS hints,
        coalesce((SELECT jsonb_agg(jsonb_build_object('id', id,
          'shown', extract(epoch FROM coalesce(shown_at, started_at)))) FROM dragoman.replicas
          WHERE id <> ${replica} AND heartbeat_at > now() - make_interval(secs => ${aliveForMs / 1_000})), '[]') AS servers,
        coalesce((SELECT json_agg(json_build_object('id', request_id, 'replica', replica, 'body', body,
          'has_ended', has_ended)) FROM dragoman.running
          WHERE replica <> ${replica} AND changed_at > to_timestamp(${since}::float8)), '[]') AS requests`,
      lookMs,
    );
    this.#readAt = performance.now();
    this.#take(row!, since === 0);
    return row!;
  }

  /** @param isFirst Nobody was told of what was there before, so nobody is told what has become of it. */
  #take({ now, servers, requests }: ReadRow, isFirst: boolean): void {
    const writing = new Set(servers.filter(({ shown }) => shown >= now - silentAfter).map(({ id }) => id));
    // When a server that was silent goes on, all that it wrote is read again.
    const isComplete = [...writing].every((id) => this.#writing.has(id));
    this.#writing = writing;
    this.#since = isComplete || isFirst ? now - overlap : 0;
    for (const { id, replica, body, has_ended: hasEnded } of requests) {
      const known = this.#others.get(id);
      if (known?.hasEnded || known?.body === body || !writing.has(replica)) continue;
      const request: InFlightRequest = JSON.parse(body);
      this.#others.set(id, { replica, body, request, hasEnded });
      if (isFirst) continue;
      if (hasEnded) this.#watchers.emit({ type: "finished", entry: request as Entry });
      else this.#watchers.emit({ type: "running", running: request });
    }
    const read = new Set(requests.map(({ id }) => id));
    let isRenewed = isFirst;
    for (const [id, { replica, hasEnded }] of this.#others) {
      if (writing.has(replica) && (read.has(id) || !(isFirst || hasEnded))) continue;
      this.#others.delete(id);
      isRenewed ||= !hasEnded;
    }
    if (isRenewed) this.#watchers.emit({ type: "renewed" });
  }
}

const notAnswered = "The other servers have not answered yet.";
const awayGap = "The database cannot be used now, so it is unknown what other servers run.";
const silentGap = (silent: number, others: number) =>
  `${plural(silent, "server")} of ${others + 1} did not answer, so it is unknown what runs there.`;

const unanswered = (count: number) =>
  new ProxyError(
    "unable",
    `${plural(count, "server")} of the team did not answer within a second, and may run this request. Try again in a moment.`,
    { code: "server_silent", status: 503, headers: { "retry-after": "5" } },
  );
