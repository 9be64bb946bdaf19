/** What servers share of their accounts through Postgres: sessions, states and quotas. */
import {
  type AccountShare,
  type FoundOut,
  renewBefore,
  type SharedSignIn,
  type SharedState,
} from "../../accounts/account-share";
import { isUsedUp, type Quota } from "../../accounts/quota";
import type { FreshSession, Unavailable } from "../../accounts/session-source";
import type { Logger } from "../../logger";
import type { Seals } from "../seal";
import { isAwayError } from "./away";
import { announceChange, type Changes, notifyServers } from "./changes";
import type { Postgres } from "./connection";
import { holdSealKey } from "./seal-rotation";
import { aboutSession } from "./sealed-columns";

export interface PostgresAccountShare extends AccountShare {
  /** Writes what was published. */
  flush(): Promise<void>;
  /** Reads the quotas that were stored since. @returns How many. */
  readQuotas(): Promise<number>;
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

/** Milliseconds until numbers of quotas are stored, and between two reads; what changes whether an account serves is told at once. */
const quotaGatherMs = 10_000;
/** Milliseconds of pause for each quota that was read: a server of a large team reads a hundred a second. */
const pausePerQuota = 10;
/** Milliseconds that another server's exchange is waited for; longer than an exchange may take. */
const patienceMs = 20_000;
/** The longest pause between two looks, ms. A stored session is announced, so most waits are shorter. */
const maxPauseMs = 500;

/** Reads all states, and follows them from now on. @throws ProxyError */
export async function openPostgresAccountShare(parts: ShareParts): Promise<PostgresAccountShare> {
  const { postgres, changes, replica, logger } = parts;
  const states = new Map<string, FoundOut & { signIn: string }>();
  const listeners: ((account: SharedSignIn, found: FoundOut) => void)[] = [];
  const pending = new Map<string, Pending>();
  let closed = false;
  let soon: Timer | undefined;
  let later: Timer | undefined;

  let readSoon: Timer | undefined;
  /** All transactions before it have ended, and what they stored is known. */
  let watermark = 0;

  const keep = ({ account: key, sign_in: signIn, state, quota, replica: author }: StateRow) => {
    const found = { ...(state && { state }), ...(quota && { quota }) };
    states.set(key, { ...found, signIn });
    if (author === replica) return;
    try {
      for (const listener of listeners) listener({ key, signIn }, found);
    } catch (thrown) {
      // What other servers have found out of other accounts is not to be missed for it.
      states.delete(key);
      logger().error(`The state of the account ${key} in the database cannot be read.`, thrown);
    }
  };
  const readAnnounced = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<StateRow[]>`SELECT account, sign_in, state, quota, replica, revision::float8 AS revision
        FROM dragoman.account_states WHERE revision > ${since} ORDER BY revision`,
    );
    for (const row of rows) keep(row);
    return rows.at(-1)?.revision ?? since;
  };
  /** @param since All if undefined. @returns The newest revision, and how many there were. */
  const readStored = async (since?: number): Promise<{ revision: number; count: number }> => {
    const rows = (await postgres.ask((sql) =>
      sql.unsafe(
        `SELECT account, sign_in, state, quota, replica, revision::float8 AS revision,
          (SELECT pg_snapshot_xmin(pg_current_snapshot()))::text::float8 AS xmin
          FROM dragoman.account_states ${since === undefined ? "" : "WHERE arrived >= $1::bigint"} ORDER BY revision`,
        since === undefined ? [] : [since],
      ),
    )) as (StateRow & { xmin: number })[];
    for (const row of rows) keep(row);
    watermark = rows[0]?.xmin ?? watermark;
    return { revision: rows.at(-1)?.revision ?? 0, count: rows.length };
  };
  const readQuotas = async (): Promise<number> => (await readStored(watermark)).count;
  const readQuotasLater = (ms: number) => {
    readSoon = setTimeout(async () => {
      const count = await readQuotas().catch((thrown) => {
        if (!isAwayError(thrown)) logger().error("The quotas of accounts could not be read.", thrown);
        return 0;
      });
      if (!closed) readQuotasLater(Math.max(quotaGatherMs, count * pausePerQuota));
    }, ms).unref();
  };
  changes.follow("account_states", (await readStored()).revision, readAnnounced);
  readQuotasLater(quotaGatherMs);

  const known = ({ key, signIn }: SharedSignIn): FoundOut => {
    const found = states.get(key);
    if (found?.signIn !== signIn) return {};
    const { signIn: _, ...rest } = found;
    return rest;
  };
  const add = (each: Pending) => {
    const before = pending.get(nameOf(each));
    pending.set(nameOf(each), { ...before, ...each, isUrgent: each.isUrgent || before?.isUrgent === true });
  };
  const flush = async (): Promise<void> => {
    for (const timer of [soon, later]) clearTimeout(timer);
    [soon, later] = [undefined, undefined];
    if (pending.size === 0) return;
    const found = [...pending.values()];
    pending.clear();
    try {
      await store(postgres, replica, found);
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("The states of accounts could not be shared.", thrown);
      // Tried again with what is found out next, and at the latest with the next quota.
      const newer = [...pending.values()];
      for (const each of [...found, ...newer]) add(each);
      later ??= setTimeout(flush, quotaGatherMs).unref();
    }
  };

  return {
    session: (account, refused, exchange) => sharedSession(parts, account, refused, exchange),
    publish(account, found) {
      const before = { ...known(account), ...pending.get(nameOf(account)) };
      const isUrgent = found.state !== undefined || changesUse(before, found);
      add({ ...account, ...found, isUrgent });
      if (isUrgent) soon ??= setTimeout(flush, 0).unref();
      else later ??= setTimeout(flush, quotaGatherMs).unref();
    },
    known,
    follow: (listener) => void listeners.push(listener),
    flush,
    readQuotas,
    close() {
      closed = true;
      for (const timer of [soon, later, readSoon]) clearTimeout(timer);
    },
  };
}

/** What this server has found out and not yet written. */
type Pending = FoundOut & SharedSignIn & { /** Others are told at once. */ isUrgent: boolean };

/** With the config's `neverOverage` an account whose quota is used up serves no more. */
const changesUse = ({ quota: before }: FoundOut, { quota: after }: FoundOut): boolean =>
  after !== undefined && isUsedUp(after) !== (before !== undefined && isUsedUp(before));

const nameOf = ({ key, signIn }: SharedSignIn) => `${key} ${signIn}`;

interface StateRow {
  account: string;
  sign_in: string;
  state: SharedState | null;
  quota: Quota | null;
  replica: string;
  revision: number;
}

/**
 * All accounts in one transaction. What is not given stays as it was. One announcement tells the others of what is urgent; they
 * read the rest when they look at the quotas.
 */
async function store(postgres: Postgres, replica: string, found: Pending[]): Promise<void> {
  const rows = found.map(({ key, signIn, state, quota, isUrgent }) => ({
    account: key,
    given_sign_in: signIn,
    state,
    quota,
    suspended: state?.account.suspended,
    urgent: isUrgent,
  }));
  await postgres.transact(async (sql) => {
    const isUrgent = found.some((each) => each.isUrgent);
    const revision = isUrgent ? await announceChange(sql, "account_states") : 0;
    await sql`INSERT INTO dragoman.account_states AS old (account, sign_in, state, epoch, quota, replica, revision, arrived)
      SELECT account, sign_in, state, CASE WHEN suspended THEN 1 ELSE 0 END, quota, ${replica}::uuid,
        CASE WHEN urgent THEN ${revision}::bigint ELSE 0 END, pg_current_xact_id()::text::bigint
        FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
          AS given(account text, given_sign_in text, state jsonb, quota jsonb, suspended boolean, urgent boolean)
        -- An account that was removed or signed in anew meanwhile has another state.
        JOIN dragoman.accounts ON key = account AND sign_in = given_sign_in AND removed_at_ms IS NULL
      ON CONFLICT (account) DO UPDATE SET sign_in = excluded.sign_in, epoch = old.epoch + excluded.epoch,
        state = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.state, old.state) ELSE excluded.state END,
        quota = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.quota, old.quota) ELSE excluded.quota END,
        replica = excluded.replica, revision = greatest(old.revision, excluded.revision), arrived = excluded.arrived`;
  });
}

/**
 * One exchange for all servers: who holds the lock makes it, the others wait for its result. The lock ends with the connection
 * of a server that is killed. Without the database each server makes its own: several valid tokens do no harm.
 */
async function sharedSession(
  parts: ShareParts,
  account: SharedSignIn,
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
        parts.logger().error(`The session of ${account.key} could not be shared.`, thrown.cause);
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
  account: SharedSignIn,
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

const topicOf = ({ key, signIn }: SharedSignIn) => `session ${key} ${signIn}`;

async function tryLock({ postgres }: ShareParts, account: SharedSignIn): Promise<boolean> {
  const [row] = await sharing(
    postgres.askDirect(
      (sql) => sql<{ held: boolean }[]>`SELECT pg_try_advisory_lock(hashtextextended(${topicOf(account)}, 1)) AS held`,
    ),
  );
  return row!.held;
}

async function unlock({ postgres, logger }: ShareParts, account: SharedSignIn): Promise<void> {
  try {
    await postgres.askDirect((sql) => sql`SELECT pg_advisory_unlock(hashtextextended(${topicOf(account)}, 1))`);
  } catch (thrown) {
    // With the connection the lock is gone.
    if (!isAwayError(thrown)) logger().error(`The lock of ${account.key} could not be released.`, thrown);
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
  { postgres, seals, logger }: ShareParts,
  { key, signIn }: SharedSignIn,
  refused: string | undefined,
): Promise<FreshSession | undefined> {
  // Times are by the clock of the database, as those of servers may differ.
  const [row] = await sharing(
    postgres.ask(
      (sql) => sql<SessionRow[]>`SELECT sessions.sealed_token, base_url,
        (extract(epoch FROM fresh_until - now()) * 1000)::float8 AS fresh_for,
        (extract(epoch FROM expires_at - now()) * 1000)::float8 AS lifetime,
        stated_expires_at_ms::float8 AS stated_expires_at_ms FROM dragoman.sessions
        JOIN dragoman.accounts ON key = account AND sign_in = ${signIn} WHERE account = ${key}`,
    ),
  );
  if (!row || row.fresh_for <= renewBefore) return undefined;
  let token: string;
  try {
    token = seals.open(row.sealed_token, aboutSession(key));
  } catch (thrown) {
    // A new one takes its place.
    logger().error(`The session of ${key} in the database cannot be used.`, thrown);
    return undefined;
  }
  if (token === refused) return undefined;
  const expiresAt = row.stated_expires_at_ms ?? undefined;
  return {
    session: { token, baseUrl: row.base_url, mode: "exchange", expiresAt },
    freshFor: row.fresh_for,
    lifetime: row.lifetime,
  };
}

/** A session that cannot be stored serves this server alone. */
async function storeSession(parts: ShareParts, account: SharedSignIn, fresh: FreshSession): Promise<void> {
  const { postgres, seals, logger } = parts;
  const { session, freshFor, lifetime } = fresh;
  try {
    await postgres.transact(async (sql) => {
      const { keyId } = await holdSealKey(sql, seals);
      const sealed = seals.seal(session.token, aboutSession(account.key));
      await sql`INSERT INTO dragoman.sessions
          (account, sealed_token, seal_key_id, base_url, fresh_until, expires_at, stated_expires_at_ms)
        SELECT key, ${sealed}::bytea, ${keyId}::text, ${session.baseUrl}::text,
          now() + make_interval(secs => ${freshFor / 1_000}), now() + make_interval(secs => ${lifetime / 1_000}),
          ${session.expiresAt ?? null}::bigint
          -- Unless the account was removed or signed in anew meanwhile.
          FROM dragoman.accounts WHERE key = ${account.key} AND sign_in = ${account.signIn} AND removed_at_ms IS NULL
        ON CONFLICT (account) DO UPDATE SET sealed_token = excluded.sealed_token, seal_key_id = excluded.seal_key_id,
          base_url = excluded.base_url, fresh_until = excluded.fresh_until, expires_at = excluded.expires_at,
          stated_expires_at_ms = excluded.stated_expires_at_ms`;
      await notifyServers(sql, { topic: topicOf(account) });
    });
  } catch (thrown) {
    if (!isAwayError(thrown)) logger().error(`The session of ${account.key} could not be stored.`, thrown);
  }
}
