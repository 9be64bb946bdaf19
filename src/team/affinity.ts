/**
 * Affinity across servers. Each server remembers the marks that it has seen, and asks the database for others if the person has
 * several accounts. A lost mark costs one refused try.
 */
import type { Account } from "../accounts/account";
import { type Affinity, markHash, openAffinity } from "../accounts/affinity";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";

export interface PostgresAffinity extends Affinity {
  flush(): Promise<void>;
  close(): void;
}

/** Milliseconds that a mark waits for others. */
const gatherMs = 250;
/** Marks that wait while the database is slow or away; more are remembered here only. */
const maxQueued = 5_000;
/** Marks of one conversation that are looked up: the newest turns come first. */
const maxAsked = 50;
/** Milliseconds that a request waits for the answer. */
const lookUpMs = 500;

export function openPostgresAffinity(postgres: Postgres, warn: (sentence: string) => void): PostgresAffinity {
  const here = openAffinity();
  const queued = new Map<bigint, string>();
  let timer: Timer | undefined;

  const flush = async (): Promise<void> => {
    timer = undefined;
    const marks = [...queued].map(([mark, account]) => ({ mark: String(mark), account }));
    queued.clear();
    if (marks.length === 0) return;
    try {
      await postgres.ask(
        (sql) => sql`INSERT INTO dragoman.affinity (mark, account)
          SELECT mark, account FROM json_to_recordset(${JSON.stringify(marks)}::text::json) AS given(mark bigint, account text)
          ON CONFLICT (mark) DO UPDATE SET account = excluded.account, seen_at = now()`,
      );
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The affinity of conversations could not be shared (${thrown}).`);
    }
  };

  const lookUp = async (marks: readonly string[], accounts: readonly Account[]): Promise<Account | undefined> => {
    const asked = marks.slice(0, maxAsked).map((mark, place) => ({ place, mark: String(markHash(mark)) }));
    try {
      const [row] = await postgres.ask(
        (sql) => sql<{ account: string; place: number }[]>`SELECT account, place FROM dragoman.affinity
          JOIN json_to_recordset(${JSON.stringify(asked)}::text::json) AS given(place int, mark bigint) USING (mark)
          ORDER BY place LIMIT 1`,
        lookUpMs,
      );
      const account = row && accounts.find(({ key }) => key === row.account);
      if (account) here.remember(marks[row.place]!, account);
      return account;
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The affinity of a conversation could not be read (${thrown}).`);
      return undefined;
    }
  };

  const areKnown = async (marks: readonly string[]): Promise<boolean> => {
    const asked = [...new Set(marks.map(markHash))].map((mark) => ({ mark: String(mark) }));
    try {
      const [row] = await postgres.ask(
        (sql) => sql<{ found: number }[]>`SELECT count(*)::int AS found FROM dragoman.affinity
          JOIN json_to_recordset(${JSON.stringify(asked)}::text::json) AS given(mark bigint) USING (mark)`,
        lookUpMs,
      );
      return row?.found === asked.length;
    } catch (thrown) {
      if (!isAwayError(thrown)) warn(`The affinity of a conversation could not be read (${thrown}).`);
      return false;
    }
  };

  return {
    remember(mark, account) {
      here.remember(mark, account);
      if (queued.size >= maxQueued) return;
      queued.set(markHash(mark), account.key);
      timer ??= setTimeout(flush, gatherMs).unref();
    },
    accountFor(marks, accounts) {
      if (accounts.length < 2) return undefined;
      const all = [...marks];
      return here.accountFor(all, accounts) ?? (all.length === 0 ? undefined : lookUp(all, accounts));
    },
    knows: (marks) => here.knows(marks) || areKnown(marks),
    flush,
    close: () => clearTimeout(timer),
  };
}
