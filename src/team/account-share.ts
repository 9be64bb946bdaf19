/** What servers share of their accounts through Postgres: states and quotas here, sessions in `shared-session.ts`. */
import type { AccountShare, FoundOut, SharedSignIn, SharedState } from "../accounts/account-share";
import { isUsedUp, type Quota } from "../accounts/quota";
import { isAwayError } from "./away";
import { announceChange } from "./changes";
import type { Postgres } from "./connection";
import type { ServerParts } from "./parts";
import { sharedSession } from "./shared-session";

export interface PostgresAccountShare extends AccountShare {
  /** Writes what was published. */
  flush(): Promise<void>;
  /** Reads the quotas that were stored since. @returns How many. */
  readQuotas(): Promise<number>;
  close(): void;
}

/** Milliseconds until numbers of quotas are stored, and between two reads; what changes whether an account serves is told at once. */
const quotaGatherMs = 10_000;
/** Milliseconds of pause for each quota that was read: a server of a large team reads a hundred a second. */
const pausePerQuota = 10;
/** Reads all states, and follows them from now on. @throws ProxyError */
export async function openPostgresAccountShare(parts: ServerParts): Promise<PostgresAccountShare> {
  const { postgres, changes, replica, logger } = parts;
  const states = new Map<string, FoundOut & { signIn: string; revision: number }>();
  const listeners: ((account: SharedSignIn, found: FoundOut) => void)[] = [];
  const pending = new Map<string, Pending>();
  /** What was announced and not read back yet, and with which revision. */
  const told = new Map<string, { found: FoundOut; revision: number }>();
  let closed = false;
  let soon: Timer | undefined;
  let later: Timer | undefined;
  let readSoon: Timer | undefined;
  /** All transactions before it have ended, and what they stored is known. */
  let watermark = 0;

  const keep = ({ account: key, sign_in: signIn, state, quota, replica: author, revision }: StateRow) => {
    const name = nameOf({ key, signIn });
    if (revision >= (told.get(name)?.revision ?? Number.POSITIVE_INFINITY)) told.delete(name);
    const found = { ...(state && { state }), ...(quota && { quota }) };
    states.set(key, { ...found, signIn, revision });
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
    if (since === 0) return (await readStored()).revision;
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
    // A standby that lagged counts transactions from an older one on.
    if (since === undefined) {
      states.clear();
      watermark = 0;
    }
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
    const { signIn: _, revision: __, ...rest } = found;
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
    const telling = found
      .filter(({ isUrgent }) => isUrgent)
      .map(({ isUrgent: _, key, signIn, ...each }) => {
        const tells = {
          found: { ...told.get(nameOf({ key, signIn }))?.found, ...each },
          revision: Number.POSITIVE_INFINITY,
        };
        told.set(nameOf({ key, signIn }), tells);
        return tells;
      });
    try {
      const revision = await store(postgres, replica, found);
      for (const tells of telling) tells.revision = revision;
      for (const [name, tells] of told)
        if (telling.includes(tells) && (states.get(name.slice(0, name.indexOf(" ")))?.revision ?? 0) >= revision)
          told.delete(name);
    } catch (thrown) {
      for (const [name, tells] of told) if (telling.includes(tells)) told.delete(name);
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
      const name = nameOf(account);
      const before = { ...known(account), ...told.get(name)?.found, ...pending.get(name) };
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
 * All accounts in one transaction. @returns The revision of what is urgent; 0 if nothing is. What is not given stays as it was. One announcement tells the others of what is urgent; they
 * read the rest when they look at the quotas.
 */
async function store(postgres: Postgres, replica: string, found: Pending[]): Promise<number> {
  const rows = found.map(({ key, signIn, state, quota, isUrgent }) => ({
    account: key,
    given_sign_in: signIn,
    state,
    quota,
    urgent: isUrgent,
  }));
  return postgres.transact(async (sql) => {
    const isUrgent = found.some((each) => each.isUrgent);
    const revision = isUrgent ? await announceChange(sql, "account_states") : 0;
    await sql`INSERT INTO dragoman.account_states AS old (account, sign_in, state, quota, replica, revision, arrived)
      SELECT account, sign_in, state, quota, ${replica}::uuid,
        CASE WHEN urgent THEN ${revision}::bigint ELSE 0 END, pg_current_xact_id()::text::bigint
        FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
          AS given(account text, given_sign_in text, state jsonb, quota jsonb, urgent boolean)
        -- An account that was removed or signed in anew meanwhile has another state.
        JOIN dragoman.accounts ON key = account AND sign_in = given_sign_in AND removed_at_ms IS NULL
      ON CONFLICT (account) DO UPDATE SET sign_in = excluded.sign_in,
        state = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.state, old.state) ELSE excluded.state END,
        quota = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.quota, old.quota) ELSE excluded.quota END,
        replica = excluded.replica, revision = greatest(old.revision, excluded.revision), arrived = excluded.arrived`;
    return revision;
  });
}
