/** Servers share the states and quotas of their accounts through Postgres; `shared-token.ts` shares the tokens. */
import type { AccountSync, AccountUpdate, SharedSignIn, SharedState } from "../people/accounts/account-sync";
import type { Quota } from "../people/accounts/quota";
import { isAwayError } from "./away";
import type { ServerParts } from "./parts";
import { sharedToken } from "./shared-token";

/** Milliseconds for which numbers of a quota wait for more. A state does not wait: what is stored last counts. */
const gatherMs = 250;
/** Milliseconds until it is written again where that failed. */
const retryMs = 5_000;
/** Milliseconds between two reads, and of pause for each row that was read: a server of a large team reads a hundred a second. */
const [readEvery, pausePerRow] = [1_000, 10];

export class TeamAccountSync implements AccountSync {
  readonly #parts: ServerParts;
  /** The keys are those of accounts. */
  readonly #states = new Map<string, AccountUpdate & { signIn: string }>();
  readonly #listeners: ((account: SharedSignIn, found: AccountUpdate) => void)[] = [];
  /** What is to be written. The keys name an account and its sign-in. */
  #pending = new Map<string, Pending>();
  #flushed = Promise.resolve();
  #closed = false;
  #flushing: Timer | undefined;
  #reading: Timer | undefined;
  /** All transactions before it have ended, and what they stored is known. */
  #watermark = 0;

  private constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** Reads all states, and follows them from now on. @throws ProxyError */
  static async open(parts: ServerParts): Promise<TeamAccountSync> {
    const sync = new TeamAccountSync(parts);
    await sync.read();
    sync.#readLater(readEvery);
    return sync;
  }

  copilotToken: AccountSync["copilotToken"] = (account, refused, exchange) =>
    sharedToken(this.#parts, account, refused, exchange);

  publish(account: SharedSignIn, found: AccountUpdate): void {
    this.#add({ ...account, ...found });
    if (found.state) queueMicrotask(() => void this.flush());
    else this.#flushing ??= setTimeout(() => void this.flush(), gatherMs).unref();
  }

  cached({ key, signIn }: SharedSignIn): AccountUpdate {
    const found = this.#states.get(key);
    if (found?.signIn !== signIn) return {};
    const { signIn: _, ...rest } = found;
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

  /** Reads what was stored since the last time. @returns How many rows. */
  async read(): Promise<number> {
    const since = this.#watermark;
    const rows = await this.#parts.postgres.requests.ask(
      (sql) => sql<(StateRow & { xmin: number })[]>`SELECT given.xmin, states.*
        FROM (SELECT (pg_snapshot_xmin(pg_current_snapshot()))::text::float8 AS xmin) AS given
        LEFT JOIN (SELECT account, sign_in, state, quota, state_by, quota_by, arrived FROM dragoman.account_states
          WHERE arrived >= ${since}::bigint) AS states ON true ORDER BY arrived`,
    );
    this.#watermark = rows[0]!.xmin;
    // Another server of Postgres answers, or a restored backup, which counts transactions from an older one on.
    if (this.#watermark < since) {
      this.#states.clear();
      this.#watermark = 0;
      return this.read();
    }
    const found = rows.filter(({ account }) => account !== null);
    for (const row of found) this.#keep(row);
    return found.length;
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#flushing, this.#reading]) clearTimeout(timer);
  }

  #add(each: Pending): void {
    this.#pending.set(nameOf(each), { ...this.#pending.get(nameOf(each)), ...each });
  }

  async #write(): Promise<void> {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    const writing = this.#pending;
    if (writing.size === 0) return;
    this.#pending = new Map();
    const before = new Map([...writing.values()].map(({ key }) => [key, this.#states.get(key)]));
    try {
      await store(this.#parts, [...writing.values()]);
      for (const own of writing.values()) this.#keepOwn(own, before.get(own.key));
    } catch (thrown) {
      this.#report("The states of accounts could not be shared.", thrown);
      const newer = this.#pending;
      this.#pending = writing;
      for (const each of newer.values()) this.#add(each);
      this.#flushing ??= setTimeout(() => void this.flush(), retryMs).unref();
    }
  }

  /** It counts before it is read back, unless something newer was read meanwhile. */
  #keepOwn({ key, signIn, ...found }: AccountUpdate & SharedSignIn, before: AccountUpdate | undefined): void {
    if (this.#states.get(key) === before) this.#states.set(key, { ...this.cached({ key, signIn }), ...found, signIn });
  }

  #report(sentence: string, thrown: unknown): void {
    if (!isAwayError(thrown)) this.#parts.logger.error(sentence, thrown);
  }

  #keep({ account: key, sign_in: signIn, state, quota, state_by, quota_by }: StateRow): void {
    const before = this.cached({ key, signIn });
    this.#states.set(key, { ...(state && { state }), ...(quota && { quota }), signIn });
    const { server } = this.#parts;
    // A row is read again when one of the two has changed, and then each may be this server's own.
    const told: AccountUpdate = {
      ...(state && state_by !== server && !Bun.deepEquals(state, before.state) && { state }),
      ...(quota && quota_by !== server && !Bun.deepEquals(quota, before.quota) && { quota }),
    };
    if (Object.keys(told).length === 0) return;
    try {
      for (const listener of this.#listeners) listener({ key, signIn }, told);
    } catch (thrown) {
      // One state that cannot be read must not hide those of other accounts.
      this.#states.delete(key);
      this.#parts.logger.error(`The state of the account ${key} in the database cannot be read.`, thrown);
    }
  }

  #readLater(ms: number): void {
    this.#reading = setTimeout(async () => {
      let count = 0;
      try {
        count = await this.read();
      } catch (thrown) {
        this.#report("The states of accounts could not be read.", thrown);
      }
      if (!this.#closed) this.#readLater(Math.max(readEvery, count * pausePerRow));
    }, ms).unref();
  }
}

/** What this server has found out and not yet written. */
type Pending = AccountUpdate & SharedSignIn;

const nameOf = ({ key, signIn }: SharedSignIn) => `${key} ${signIn}`;

interface StateRow {
  account: string;
  sign_in: string;
  state: SharedState | null;
  quota: Quota | null;
  /** The servers that stored them. */
  state_by: string | null;
  quota_by: string | null;
}

/** Stores all accounts in one statement. What is not given stays as it was. */
async function store({ postgres, server }: ServerParts, found: Pending[]): Promise<void> {
  const rows = found.map(({ key, signIn, state, quota }) => ({ account: key, given_sign_in: signIn, state, quota }));
  await postgres.requests.ask(
    (
      sql,
    ) => sql`INSERT INTO dragoman.account_states AS old (account, sign_in, state, quota, state_by, quota_by, arrived)
      SELECT account, sign_in, state, quota, CASE WHEN state IS NOT NULL THEN ${server}::uuid END,
        CASE WHEN quota IS NOT NULL THEN ${server}::uuid END, pg_current_xact_id()::text::bigint
        FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
          AS given(account text, given_sign_in text, state jsonb, quota jsonb)
        -- An account that was removed or signed in anew meanwhile has another state.
        JOIN dragoman.accounts ON key = account AND sign_in = given_sign_in
      ON CONFLICT (account) DO UPDATE SET sign_in = excluded.sign_in,
        state = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.state, old.state) ELSE excluded.state END,
        quota = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.quota, old.quota) ELSE excluded.quota END,
        state_by = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.state_by, old.state_by) ELSE excluded.state_by END,
        quota_by = CASE WHEN old.sign_in = excluded.sign_in THEN coalesce(excluded.quota_by, old.quota_by) ELSE excluded.quota_by END,
        arrived = excluded.arrived`,
  );
}
