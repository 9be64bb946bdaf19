/** This server among those of the team: it reports that it is alive, and one of them is the leader, which removes what is over. */
import { hostname } from "node:os";
import type { SQL } from "bun";
import { rememberSentFor } from "../books/notices/sent-notices";
import { ProxyError } from "../lib/errors";
import { plural } from "../lib/format";
import type { Logger } from "../lib/logger";
import { overOf } from "../people/keys/member-tables";
import type { KnownServer } from "../people/keys/team";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import { PostgresTables } from "./postgres-tables";
import { settledDays } from "./settlements";

interface OwnServerParts {
  postgres: Postgres;
  version: string;
  logger: Logger;
}

/** Milliseconds. */
const heartbeatEvery = 5_000;
const cleanEvery = 60_000;

export class OwnServer {
  readonly id = crypto.randomUUID();
  readonly #parts: OwnServerParts;
  #isLeader = false;
  #servers: readonly KnownServer[] | undefined;
  #cleanedAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;

  private constructor(parts: OwnServerParts) {
    this.#parts = parts;
  }

  /** Reports this server to the others. @throws ProxyError if the database is away. */
  static async join(parts: OwnServerParts): Promise<OwnServer> {
    const server = new OwnServer(parts);
    await server.#heartbeat();
    server.#timer = setInterval(() => server.#tryHeartbeat(), heartbeatEvery).unref();
    return server;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  /** The servers that were alive at the last heartbeat, a few seconds ago; undefined if the database did not answer then. */
  get servers(): readonly KnownServer[] | undefined {
    return this.#servers;
  }

  /** The connection that held the leader's lock is lost. */
  lostLock(): void {
    this.#isLeader = false;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending;
    this.#isLeader = false;
    await this.#parts.postgres.requests
      .ask((sql) => sql`DELETE FROM dragoman.servers WHERE id = ${this.id}`)
      .catch(() => {}); // others notice within seconds that it is gone
  }

  #tryHeartbeat(): void {
    this.#sending ??= this.#heartbeat()
      .catch((thrown) => {
        this.#servers = undefined;
        if (!isAwayError(thrown)) this.#parts.logger.error("The upkeep of the database failed.", thrown);
      })
      .finally(() => {
        this.#sending = undefined;
      });
  }

  async #heartbeat(): Promise<void> {
    const { postgres, version } = this.#parts;
    await postgres.requests.ask(
      (sql) => sql`INSERT INTO dragoman.servers (id, host, version, leads)
        VALUES (${this.id}, ${hostname()}, ${version}, ${this.#isLeader})
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), leads = excluded.leads`,
    );
    // The lock belongs to the connection. Without an election, the next server takes it when this one is gone.
    const [row] = await postgres.askDirect(
      (sql) => sql<{ held: boolean }[]>`SELECT
        CASE WHEN ${this.#isLeader} THEN true ELSE pg_try_advisory_lock(hashtextextended('dragoman leader', 0)) END AS held,
        -- A machine that disappears closes no connection: Postgres does within half a minute, and its locks are free.
        set_config('tcp_keepalives_idle', '15', false), set_config('tcp_keepalives_interval', '5', false),
        set_config('tcp_keepalives_count', '3', false)`,
    );
    const leads = row!.held;
    if (leads !== this.#isLeader)
      await postgres.requests.ask((sql) => sql`UPDATE dragoman.servers SET leads = ${leads} WHERE id = ${this.id}`);
    this.#isLeader = leads;
    this.#servers = await postgres.requests.ask(aliveServers);
    if (!leads || performance.now() - this.#cleanedAt < cleanEvery) return;
    this.#cleanedAt = performance.now();
    await removeOld(postgres);
  }
}

/** The servers that reported within the last minute: a server that was killed does not remove its row. */
export const aliveServers = (sql: SQL): Promise<KnownServer[]> =>
  sql<KnownServer[]>`SELECT id, version, host, leads AS "isLeader"
    FROM dragoman.servers WHERE heartbeat_at > now() - interval '1 minute' ORDER BY started_at, id`;

/** @throws ProxyError `conflict` if servers run. */
export function requireNoServer({ length: count }: readonly KnownServer[]): void {
  if (count === 0) return;
  throw new ProxyError(
    "conflict",
    `${plural(count, "server")} of the database ${count === 1 ? "is" : "are"} running. Stop ${count === 1 ? "it" : "them"} first, then run this again; one that was killed is forgotten after a minute.`,
    { code: "server_running" },
  );
}

const rememberSentSeconds = rememberSentFor / 1_000;

/**
 * Removes settled reservations: a settlement that arrives again must not count again, and it may wait on the disk of a server that
 * does not run. So those of servers that run go after a day, and the others later, without being read before.
 */
export async function removeSettled(postgres: Postgres): Promise<void> {
  const settled = "DELETE FROM dragoman.reservations WHERE state <> 'running' AND changed_at < now()";
  // Named one by one, so that Postgres knows how few rows each has.
  const running = (await postgres.ask(aliveServers)).map(({ id }) => `'${id}'`);
  for (const which of [
    `- interval '${settledDays} days'`,
    `- interval '1 day' AND server IN (${running.length > 0 ? running : "NULL"})`,
  ])
    await postgres.ask((sql) => sql.unsafe(`${settled} ${which}`), 60_000);
}

/** Removes what is over. Each statement alone, so that one lock holds nothing else up. */
async function removeOld(postgres: Postgres): Promise<void> {
  const statements = [
    // Their server was killed. A reservation of the same budget would free them too, but there may be none.
    `SELECT dragoman.expire_reservations(ledger) FROM dragoman.ledger WHERE reserved > 0 AND (budget, kind, member, item, start_ms) IN
      (SELECT budget, kind, member, item, start_ms FROM dragoman.reservations WHERE state = 'running' AND expires_at <= now())`,
    "DELETE FROM dragoman.ledger WHERE changed_at < now() - interval '400 days'",
    "DELETE FROM dragoman.affinity WHERE seen_at < now() - interval '30 days'",
    "DELETE FROM dragoman.ended_page_sign_ins WHERE until_ms < (extract(epoch FROM now()) * 1000)::bigint",
    "DELETE FROM dragoman.sign_ins WHERE kept_until < now()",
    "DELETE FROM dragoman.servers WHERE heartbeat_at < now() - interval '1 day'",
    `DELETE FROM dragoman.notices WHERE sent_at < now() - make_interval(secs => ${rememberSentSeconds})`,
  ];
  await removeSettled(postgres);
  const tables = new PostgresTables(postgres);
  for (const statement of overOf(tables)) await tables.ask(statement);
  for (const statement of statements) await postgres.ask((sql) => sql.unsafe(statement), 60_000);
}
