/** Which of their accounts members have paused, and in which order they use them, in Postgres. */
import type { TransactionSQL } from "bun";
import type { AccountChoices } from "../../accounts/account-store";
import { ProxyError } from "../../errors";
import type { Postgres } from "./connection";

/** Columns of an account's row. */
export interface ChosenColumns {
  paused: boolean;
  place: number | null;
}

interface ChoiceParts {
  postgres: Postgres;
  /** Of the account with this key. */
  known(key: string): ChosenColumns | undefined;
  /** Numbers and announces a change of the accounts. */
  announce(sql: TransactionSQL): Promise<number>;
  /** Reads what was changed. */
  catchUp(): Promise<void>;
}

export function postgresAccountChoices({ postgres, known, announce, catchUp }: ChoiceParts): AccountChoices {
  return {
    isPaused: (key) => known(key)?.paused ?? false,
    placeOf: (key) => known(key)?.place ?? undefined,
    async pause(member, key, paused) {
      await postgres.transact(async (sql) => {
        const revision = await announce(sql);
        const changed = await sql`UPDATE dragoman.accounts SET paused = ${paused}, revision = ${revision}
          WHERE key = ${key} AND member = ${member} AND removed_at_ms IS NULL RETURNING key`;
        if (changed.length === 0)
          throw new ProxyError("not_found", `There is no account ${key.slice(0, 100)}.`, { code: "account_not_found" });
      });
      await catchUp();
    },
    async arrange(member, keys) {
      await postgres.transact(async (sql) => {
        const revision = await announce(sql);
        await sql`UPDATE dragoman.accounts SET place = wanted.place, revision = ${revision}
          FROM jsonb_array_elements_text(${JSON.stringify(keys)}::text::jsonb) WITH ORDINALITY AS wanted (key, place)
          WHERE accounts.key = wanted.key AND member = ${member} AND removed_at_ms IS NULL`;
      });
      await catchUp();
    },
  };
}
