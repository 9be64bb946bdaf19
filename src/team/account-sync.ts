/** Servers share the states and quotas of their accounts through Postgres; `shared-token.ts` shares the tokens. */
import type { AccountSync, AccountUpdate, SharedSignIn, SharedState } from "../people/accounts/account-sync";
import { isUsedUp, type Quota } from "../people/accounts/quota";
import { isAwayError } from "./away";
import { announceChange } from "./changes";
import type { ServerParts } from "./parts";
import { sharedToken } from "./shared-token";

/** Milliseconds until numbers of quotas are stored, and between two reads; what changes whether an account serves is told at once. */
const quotaGatherMs = 10_000;
/** Milliseconds of pause for each quota that was read: a server of a large team reads a hundred a second. */
const pausePerQuota = 10;

export class TeamAccountSync implements AccountSync {
  readonly #parts: ServerParts;
  /** The keys are those of accounts. */
  readonly #states = new Map<string, AccountUpdate & { signIn: string; revision: number }>();
  readonly #listeners: ((account: SharedSignIn, found: AccountUpdate) => void)[] = [];
  /** What is to be written, and what is being written. The keys name an account and its sign-in. */
  #pending = new Map<string, Pending>();
  #writing = new Map<string, Pending>();
  #flushed = Promise.resolve();
  #closed = false;
  #soon: Timer | undefined;
  #later: Timer | undefined;
  #reading: Timer | undefined;
  /** All transactions before it have ended, and what they stored is known. */
  #watermark = 0;

  private constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** Reads all states, and follows them from now on. @throws ProxyError */
  static async open(parts: ServerParts): Promise<TeamAccountSync> {
    const sync = new TeamAccountSync(parts);
    const { revision } = await sync.#readStored();
    parts.changes.follow("account_states", revision, (since) => sync.#readAnnounced(since));
    sync.#readQuotasLater(quotaGatherMs);
    return sync;
  }

  copilotToken: AccountSync["copilotToken"] = (account, refused, exchange) =>
    sharedToken(this.#parts, account, refused, exchange);

  publish(account: SharedSignIn, found: AccountUpdate): void {
    const name = nameOf(account);
    const before = { ...this.cached(account), ...this.#writing.get(name), ...this.#pending.get(name) };
    const isUrgent = found.state !== undefined || changesUse(before, found);
    this.#add({ ...account, ...found, isUrgent });
    if (isUrgent) this.#soon ??= setTimeout(() => void this.flush(), 0).unref();
    else this.#later ??= setTimeout(() => void this.flush(), quotaGatherMs).unref();
  }

  cached({ key, signIn }: SharedSignIn): AccountUpdate {
    const found = this.#states.get(key);
    if (found?.signIn !== signIn) return {};
    const { signIn: _, revision: __, ...rest } = found;
    return rest;
  }

  follow(listener: (account: SharedSignIn, found: AccountUpdate) => void): void {
    this.#listeners.push(listener);
  }

  /** Writes what was published. */
  flush(): Promise<void> {
    this.#flushed = this.#flushed.then(() => this.#write());
    return this.#flushed;
  }

  /** Reads the quotas that were stored since. @returns How many. */
  async readQuotas(): Promise<number> {
    return (await this.#readStored(this.#watermark)).count;
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#soon, this.#later, this.#reading]) clearTimeout(timer);
  }

  #add(each: Pending): void {
    const before = this.#pending.get(nameOf(each));
    this.#pending.set(nameOf(each), { ...before, ...each, isUrgent: each.isUrgent || before?.isUrgent === true });
  }

  async #write(): Promise<void> {
    for (const timer of [this.#soon, this.#later]) clearTimeout(timer);
    [this.#soon, this.#later] = [undefined, undefined];
    if (this.#pending.size === 0) return;
    [this.#writing, this.#pending] = [this.#pending, new Map()];
    try {
      const revision = await store(this.#parts, [...this.#writing.values()]);
      for (const { isUrgent, ...own } of this.#writing.values()) if (isUrgent) this.#keepOwn(own, revision);
    } catch (thrown) {
      this.#report("The states of accounts could not be shared.", thrown);
      // It is tried again with what is found out next, and with the next quota at the latest.
      const newer = this.#pending;
      this.#pending = this.#writing;
      for (const each of newer.values()) this.#add(each);
      this.#later ??= setTimeout(() => void this.flush(), quotaGatherMs).unref();
    }
    this.#writing = new Map();
  }

  /** It counts before it is read back, unless another server has announced something newer. */
  #keepOwn({ key, signIn, ...found }: AccountUpdate & SharedSignIn, revision: number): void {
    if ((this.#states.get(key)?.revision ?? 0) < revision)
      this.#states.set(key, { ...this.cached({ key, signIn }), ...found, signIn, revision });
  }

  #report(sentence: string, thrown: unknown): void {
    if (!isAwayError(thrown)) this.#parts.logger.error(sentence, thrown);
  }

  #keep({ account: key, sign_in: signIn, state, quota, server: author, revision }: StateRow): void {
    const found = { ...(state && { state }), ...(quota && { quota }) };
    this.#states.set(key, { ...found, signIn, revision });
    if (author === this.#parts.server) return;
    try {
      for (const listener of this.#listeners) listener({ key, signIn }, found);
    } catch (thrown) {
      // One state that cannot be read must not hide those of other accounts.
      this.#states.delete(key);
      this.#parts.logger.error(`The state of the account ${key} in the database cannot be read.`, thrown);
    }
  }

  async #readAnnounced(since: number): Promise<number> {
    if (since === 0) return (await this.#readStored()).revision;
    const rows = await this.#parts.postgres.requests.ask(
      (sql) => sql<StateRow[]>`SELECT account, sign_in, state, quota, server, revision::float8 AS revision
        FROM dragoman.account_states WHERE revision > ${since} ORDER BY revision`,
    );
    for (const row of rows) this.#keep(row);
    return rows.at(-1)?.revision ?? since;
  }

  /** @param since All if undefined. @returns The newest revision, and how many there were. */
  async #readStored(since?: number): Promise<{ revision: number; count: number }> {
    const rows = (await this.#parts.postgres.requests.ask((sql) =>
      sql.unsafe(
        `SELECT account, sign_in, state, quota, server, revision::float8 AS revision,
          (SELECT pg_snapshot_xmin(pg_current_snapshot()))::text::float8 AS xmin
          FROM dragoman.account_states ${since === undefined ? "" : "WHERE arrived >= $1::bigint"} ORDER BY revision`,
        since === undefined ? [] : [since],
      ),
    )) as (StateRow & { xmin: number })[];
    // Behind a new connection may be another server of Postgres, which counts transactions from an older one on.
    if (since === undefined) {
      this.#states.clear();
      this.#watermark = 0;
    }
    for (const row of rows) this.#keep(row);
    this.#watermark = rows[0]?.xmin ?? this.#watermark;
    return { revision: rows.at(-1)?.revision ?? 0, count: rows.length };
  }

  #readQuotasLater(ms: number): void {
    this.#reading = setTimeout(async () => {
      let count = 0;
      try {
        count = await this.readQuotas();
      } catch (thrown) {
        this.#report("The quotas of accounts could not be read.", thrown);
      }
      if (!this.#closed) this.#readQuotasLater(Math.max(quotaGatherMs, count * pausePerQuota));
    }, ms).unref();
  }
}

/** What this server has found out and not yet written. */
type Pending = AccountUpdate & SharedSignIn & { /** Others are told at once. */ isUrgent: boolean };

/** With the config's `neverOverage` an account whose quota is used up serves no more. */
const changesUse = ({ quota: before }: AccountUpdate, { quota: after }: AccountUpdate): boolean =>
  after !== undefined && isUsedUp(after) !== (before !== undefined && isUsedUp(before));

const nameOf = ({ key, signIn }: SharedSignIn) => `${key} ${signIn}`;

interface StateRow {
  account: string;
  sign_in: string;
  state: SharedState | null;
  quota: Quota | null;
  server: string;
  revision: number;
}

/**
 * Stores all accounts in one transaction. What is not given stays as it was. One announcement tells the others of what is urgent;
 * they read the rest when they look at the quotas.
 * @returns The revision of what is urgent; 0 if nothing is.
 */
async function store({ postgres, server }: ServerParts, found: Pending[]): Promise<number> {
  const rows = found.map(({ key, signIn, state, quota, isUrgent }) => ({
    account: key,
    given_sign_in: signIn,
    state,
    quota,
    urgent: isUrgent,
  }));
  return postgres.requests.transact(async (sql) => {
    const isUrgent = found.some((each) => each.isUrgent);
    const revision = isUrgent ? await announceChange(sql, "account_states") : 0;
    await sql`INSERT INTO dragoman.account_states AS old (account, sign_in, state, quota, server, revision, arrived)
      SELECT account, sign_in, state, quota, ${server}::uuid,
        CASE WHEN urgent THEN ${revision}::bigint ELSE 0 END, pg_current_xact_id()::text::bigint
        FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
          AS given(account text, given_sign_in text, state jsonb, quota jsonb, urgent boolean)
        -- An account that was removed or signed in anew meanwhile has another state.
        JOIN dragoman.accounts ON key = account AND sign_in = given_sign_in AND removed_at_ms IS NULL
      ON CONFLICT (account) DO UPDATE SET sign_in = excluded.sign_in,
        state = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.state, old.state) ELSE excluded.state END,
        quota = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.quota, old.quota) ELSE excluded.quota END,
        server = excluded.server, revision = greatest(old.revision, excluded.revision), arrived = excluded.arrived`;
    return revision;
  });
}
