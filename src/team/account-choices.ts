/** Members pause and order their accounts; Postgres has what they chose. */
import { type AccountChoices, accountNotFound } from "../accounts/account-store";
import { announceChange } from "./changes";
import type { Postgres } from "./connection";

/** Columns of an account's row. */
export interface ChosenColumns {
  paused: boolean;
  place: number | null;
}

interface ChoiceParts {
  postgres: Postgres;
  /** @returns What was chosen for the account with this key. */
  known(key: string): ChosenColumns | undefined;
  /** Reads what was changed. */
  catchUp(): Promise<void>;
}

export function postgresAccountChoices({ postgres, known, catchUp }: ChoiceParts): AccountChoices {
  return {
    isPaused: (key) => known(key)?.paused ?? false,
    placeOf: (key) => known(key)?.place ?? undefined,
    async pause(member, key, paused) {
      await postgres.transact(async (sql) => {
        const revision = await announceChange(sql, "accounts");
        const changed = await sql`UPDATE dragoman.accounts SET paused = ${paused}, revision = ${revision}
          WHERE key = ${key} AND member = ${member} AND removed_at_ms IS NULL RETURNING key`;
        if (changed.length === 0) throw accountNotFound(key);
      });
      await catchUp();
    },
    async arrange(member, keys) {
      await postgres.transact(async (sql) => {
        const revision = await announceChange(sql, "accounts");
        await sql`UPDATE dragoman.accounts SET place = wanted.place, revision = ${revision}
          FROM jsonb_array_elements_text(${JSON.stringify(keys)}::text::jsonb) WITH ORDINALITY AS wanted (key, place)
          WHERE accounts.key = wanted.key AND member = ${member} AND removed_at_ms IS NULL`;
      });
      await catchUp();
    },
  };
}
