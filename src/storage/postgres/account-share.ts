/** What servers share of their accounts through Postgres: sessions, states and quotas. */
import type { AccountShare, FoundOut, SharedState } from "../../accounts/account-share";
import { renewBefore } from "../../accounts/account-share";
import type { Quota } from "../../accounts/quota";
import type { FreshSession, Unavailable } from "../../accounts/session-source";
import type { Logger } from "../../logger";
import type { Seals } from "../seal";
import type { Changes } from "./changes";
import { isAwayError, type Postgres, sqlState } from "./connection";
import { holdSealKey } from "./seal-rotation";
import { aboutSession } from "./sealed-columns";

export interface PostgresAccountShare extends AccountShare {
  /** Writes what was published. */
  flush(): Promise<void>;
  close(): void;
}

interface ShareParts {
  postgres: Postgres;
  seals: Seals;
  changes: Changes;
  /** The id of this server. */
  replica: string;
  logger(): Logger;
}

/** Milliseconds until numbers of quotas are published; states are published at once. */
const quotaGatherMs = 10_000;
/** Milliseconds that another server's exchange is waited for; longer than an exchange may take. */
const patienceMs = 20_000;
/** The longest pause between two looks, ms. A stored session is announced, so most waits are shorter. */
const maxPauseMs = 500;

/** Reads all states, and follows them from now on. @throws ProxyError */
export async function openPostgresAccountShare(parts: ShareParts): Promise<PostgresAccountShare> {
  const { postgres, changes, replica, logger } = parts;
  const states = new Map<string, FoundOut>();
  const listeners: ((account: string, found: FoundOut) => void)[] = [];
  const pending = new Map<string, FoundOut>();
  let soon: Timer | undefined;
  let later: Timer | undefined;

  const read = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<StateRow[]>`SELECT account, state, quota, replica, revision::float8 AS revision
        FROM dragoman.account_states WHERE revision > ${since} ORDER BY revision`,
    );
    for (const { account, state, quota, replica: author } of rows) {
      const found = { ...(state && { state }), ...(quota && { quota }) };
      states.set(account, found);
      if (author !== replica) for (const listener of listeners) listener(account, found);
    }
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow("account_states", await read(0), read);

  const flush = async (): Promise<void> => {
    for (const timer of [soon, later]) clearTimeout(timer);
    [soon, later] = [undefined, undefined];
    if (pending.size === 0) return;
    const found = [...pending];
    pending.clear();
    try {
      await store(postgres, replica, found);
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("The states of accounts could not be shared.", thrown);
      // Tried again with what is found out next, and at the latest with the next quota.
      for (const [account, each] of found) pending.set(account, { ...each, ...pending.get(account) });
      later ??= setTimeout(flush, quotaGatherMs).unref();
    }
  };

  return {
    session: (account, refused, exchange) => sharedSession(parts, account, refused, exchange),
    publish(account, found) {
      pending.set(account, { ...pending.get(account), ...found });
      if (found.state) soon ??= setTimeout(flush, 0).unref();
      else later ??= setTimeout(flush, quotaGatherMs).unref();
    },
    known: (account) => states.get(account) ?? {},
    follow: (listener) => void listeners.push(listener),
    flush,
    close() {
      for (const timer of [soon, later]) clearTimeout(timer);
    },
  };
}

interface StateRow {
  account: string;
  state: SharedState | null;
  quota: Quota | null;
  replica: string;
  revision: number;
}

/** All accounts in one transaction and with one announcement. What is not given stays as it was. */
async function store(postgres: Postgres, replica: string, found: [string, FoundOut][]): Promise<void> {
  const rows = found.map(([account, { state, quota }]) => ({
    account,
    state,
    quota,
    suspended: state?.account.suspended,
  }));
  await postgres.transact(async (sql) => {
    const [row] = await sql<{ revision: number }[]>`
      SELECT dragoman.announce_change('account_states')::float8 AS revision`;
    await sql`INSERT INTO dragoman.account_states AS old (account, state, epoch, quota, replica, revision)
      SELECT account, state, CASE WHEN suspended THEN 1 ELSE 0 END, given.quota, ${replica}::uuid, ${row!.revision}
        FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
          AS given(account text, state jsonb, quota jsonb, suspended boolean)
        -- An account that was removed meanwhile has no state.
        JOIN dragoman.accounts ON key = account AND removed_at_ms IS NULL
      ON CONFLICT (account) DO UPDATE SET state = coalesce(excluded.state, old.state),
        epoch = old.epoch + excluded.epoch, quota = coalesce(excluded.quota, old.quota), replica = excluded.replica,
        revision = excluded.revision`;
  });
}

/**
 * One exchange for all servers: who holds the lock makes it, the others wait for its result. The lock ends with the connection
 * of a server that is killed. Without the database each server makes its own: several valid tokens do no harm.
 */
async function sharedSession(
  parts: ShareParts,
  account: string,
  refused: string | undefined,
  exchange: () => Promise<FreshSession | Unavailable>,
): Promise<FreshSession | Unavailable> {
  const deadline = performance.now() + patienceMs;
  for (let pause = 20; performance.now() < deadline; pause = Math.min(pause * 2, maxPauseMs)) {
    try {
      const stored = await readSession(parts, account, refused);
      if (stored) return stored;
      if (await tryLock(parts, account)) return await exchangeLocked(parts, account, refused, exchange);
    } catch (thrown) {
      if (!(thrown instanceof ShareFailure)) throw thrown;
      if (!isAwayError(thrown.cause))
        parts.logger().error(`The session of ${account} could not be shared.`, thrown.cause);
      return exchange();
    }
    await parts.changes.hear(topicOf(account), pause);
  }
  return exchange();
}

/** An error of the database, as opposed to one of the exchange. */
class ShareFailure extends Error {}

const sharing = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (cause) {
    throw new ShareFailure("", { cause });
  }
};

async function exchangeLocked(
  parts: ShareParts,
  account: string,
  refused: string | undefined,
  exchange: () => Promise<FreshSession | Unavailable>,
): Promise<FreshSession | Unavailable> {
  try {
    // Another server may have stored it before it released the lock.
    const stored = await readSession(parts, account, refused);
    if (stored) return stored;
    const fresh = await exchange();
    if ("session" in fresh && fresh.session.mode === "exchange") await storeSession(parts, account, fresh);
    return fresh;
  } finally {
    await unlock(parts, account);
  }
}

const topicOf = (account: string) => `session ${account}`;

async function tryLock({ postgres }: ShareParts, account: string): Promise<boolean> {
  const [row] = await sharing(
    postgres.askDirect(
      (sql) => sql<{ held: boolean }[]>`SELECT pg_try_advisory_lock(hashtextextended(${topicOf(account)}, 1)) AS held`,
    ),
  );
  return row!.held;
}

async function unlock({ postgres, logger }: ShareParts, account: string): Promise<void> {
  try {
    await postgres.askDirect((sql) => sql`SELECT pg_advisory_unlock(hashtextextended(${topicOf(account)}, 1))`);
  } catch (thrown) {
    // With the connection the lock is gone.
    if (!isAwayError(thrown)) logger().error(`The lock of ${account} could not be released.`, thrown);
  }
}

interface SessionRow {
  sealed_token: Uint8Array;
  base_url: string;
  fresh_for: number;
  lifetime: number;
  stated_expires_at_ms: number | null;
}

async function readSession(
  { postgres, seals }: ShareParts,
  account: string,
  refused: string | undefined,
): Promise<FreshSession | undefined> {
  // Times are by the clock of the database, as those of servers may differ.
  const [row] = await sharing(
    postgres.ask(
      (sql) => sql<SessionRow[]>`SELECT sealed_token, base_url,
        (extract(epoch FROM fresh_until - now()) * 1000)::float8 AS fresh_for,
        (extract(epoch FROM expires_at - now()) * 1000)::float8 AS lifetime,
        stated_expires_at_ms::float8 AS stated_expires_at_ms FROM dragoman.sessions WHERE account = ${account}`,
    ),
  );
  if (!row || row.fresh_for <= renewBefore) return undefined;
  const token = seals.open(row.sealed_token, aboutSession(account));
  if (token === refused) return undefined;
  const expiresAt = row.stated_expires_at_ms ?? undefined;
  return {
    session: { token, baseUrl: row.base_url, mode: "exchange", expiresAt },
    freshFor: row.fresh_for,
    lifetime: row.lifetime,
  };
}

/** A session that cannot be stored serves this server alone. */
async function storeSession(parts: ShareParts, account: string, fresh: FreshSession): Promise<void> {
  const { postgres, seals, logger } = parts;
  const { session, freshFor, lifetime } = fresh;
  try {
    await postgres.transact(async (sql) => {
      const { keyId } = await holdSealKey(sql, seals);
      const sealed = seals.seal(session.token, aboutSession(account));
      await sql`INSERT INTO dragoman.sessions
          (account, sealed_token, seal_key_id, base_url, fresh_until, expires_at, stated_expires_at_ms)
        VALUES (${account}, ${sealed}, ${keyId}, ${session.baseUrl}, now() + make_interval(secs => ${freshFor / 1_000}),
          now() + make_interval(secs => ${lifetime / 1_000}), ${session.expiresAt ?? null})
        ON CONFLICT (account) DO UPDATE SET sealed_token = excluded.sealed_token, seal_key_id = excluded.seal_key_id,
          base_url = excluded.base_url, fresh_until = excluded.fresh_until, expires_at = excluded.expires_at,
          stated_expires_at_ms = excluded.stated_expires_at_ms`;
      await sql`SELECT pg_notify('dragoman', ${JSON.stringify({ topic: topicOf(account) })})`;
    });
  } catch (thrown) {
    // The account was removed meanwhile.
    if (sqlState(thrown) === "23503" || isAwayError(thrown)) return;
    logger().error(`The session of ${account} could not be stored.`, thrown);
  }
}
