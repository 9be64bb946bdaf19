/**
 * Affinity across servers. Each server remembers the marks that it has seen, and asks the database for others if the person has
 * several accounts. A lost mark costs one refused try.
 */
import type { Awaitable } from "../lib/awaitable";
import type { Account } from "../people/accounts/account";
import { type Affinity, markHash, openAffinity } from "../people/accounts/affinity";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";

/** Milliseconds that a mark waits for others. */
const gatherMs = 250;
/** Marks that wait while the database is slow or away; more are remembered here only. */
const maxQueued = 5_000;
/** Marks of one conversation that are looked up: the newest turns come first. */
const maxAsked = 50;
/** Milliseconds that a request waits for the answer. */
const lookUpMs = 500;

export class TeamAffinity implements Affinity {
  readonly #postgres: Postgres;
  readonly #warn: (sentence: string) => void;
  readonly #here = openAffinity();
  readonly #queued = new Map<bigint, string>();
  #timer: Timer | undefined;

  constructor(postgres: Postgres, warn: (sentence: string) => void) {
    this.#postgres = postgres;
    this.#warn = warn;
  }

  remember(mark: string, account: Account): void {
    this.#here.remember(mark, account);
    if (this.#queued.size >= maxQueued) return;
    this.#queued.set(markHash(mark), account.key);
    this.#timer ??= setTimeout(() => void this.flush(), gatherMs).unref();
  }

  accountFor(marks: Iterable<string>, accounts: readonly Account[]): Awaitable<Account | undefined> {
    const all = [...marks];
    return this.#here.accountFor(all, accounts) ?? (all.length === 0 ? undefined : this.#lookUp(all, accounts));
  }

  knows(marks: readonly string[]): Awaitable<boolean> {
    return this.#here.knows(marks) || this.#ask(marks).then((found) => found.length === marks.length);
  }

  /** Writes the marks that wait. Never throws. */
  async flush(): Promise<void> {
    this.#timer = undefined;
    const marks = [...this.#queued].map(([mark, account]) => ({ mark: String(mark), account }));
    this.#queued.clear();
    if (marks.length === 0) return;
    try {
      await this.#postgres.requests.ask(
        (sql) => sql`INSERT INTO dragoman.affinity (mark, account)
          SELECT mark, account FROM json_to_recordset(${JSON.stringify(marks)}::text::json) AS given(mark bigint, account text)
          ON CONFLICT (mark) DO UPDATE SET account = excluded.account, seen_at = now()`,
      );
    } catch (thrown) {
      this.#report("The affinity of conversations could not be shared", thrown);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  async #lookUp(marks: readonly string[], accounts: readonly Account[]): Promise<Account | undefined> {
    const [first] = await this.#ask(marks.slice(0, maxAsked));
    const account = first && accounts.find(({ key }) => key === first.account);
    if (account) this.#here.remember(marks[first.place]!, account);
    return account;
  }

  /** Those of the marks that the database knows, in their order. Never throws: what is not known in time costs a refused try. */
  async #ask(marks: readonly string[]): Promise<{ account: string; place: number }[]> {
    const asked = JSON.stringify(marks.map((mark, place) => ({ place, mark: String(markHash(mark)) })));
    try {
      return await this.#postgres.requests.ask(
        (sql) => sql`SELECT account, place FROM dragoman.affinity
          JOIN json_to_recordset(${asked}::text::json) AS given(place int, mark bigint) USING (mark) ORDER BY place`,
        lookUpMs,
      );
    } catch (thrown) {
      this.#report("The affinity of a conversation could not be read", thrown);
      return [];
    }
  }

  #report(what: string, thrown: unknown): void {
    if (!isAwayError(thrown)) this.#warn(`${what} (${thrown}).`);
  }
}
