/** The accounts of members, with the states that servers last found out. */
import type { SharedState } from "../accounts/account-sync";
import type { MemberAccount } from "../keys/members";
import type { Postgres } from "./connection";

interface MemberAccountRow {
  member: string;
  key: string;
  paused: boolean;
  state: SharedState | null;
}

/** @param now Unix ms. @returns By the member's id. */
export async function memberAccountsIn(
  postgres: Postgres,
  ids: readonly string[],
  now: number,
): Promise<Map<string, MemberAccount[]>> {
  const rows = await postgres.ask(
    (sql) => sql<MemberAccountRow[]>`SELECT member, key, paused, state FROM dragoman.accounts
      LEFT JOIN dragoman.account_states AS known ON account = key AND known.sign_in = accounts.sign_in
      WHERE member IN (SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)::uuid)
        AND removed_at_ms IS NULL ORDER BY place, added_at_ms, key`,
  );
  const byMember = Map.groupBy(rows, ({ member }) => member);
  return new Map([...byMember].map(([member, own]) => [member, own.map((row) => shown(row, now))]));
}

/** A state that is over by now counts as ready: the servers find out with the next request. */
function shown({ key, paused, state }: MemberAccountRow, now: number): MemberAccount {
  const known = state?.account ?? { name: "ready" };
  const isOver = "until" in known && known.until <= now;
  return { account_key: key, state: paused ? "paused" : isOver ? "ready" : known.name };
}
