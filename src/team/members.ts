/** The members in Postgres, and what else Postgres has of them. */
import { sql } from "../lib/sql";
import type { SharedState } from "../people/accounts/account-sync";
import type { AccessTokens } from "../people/keys/access-tokens";
import type { MemberAccount } from "../people/keys/members";
import { StoredMembers } from "../people/keys/stored-members";
import type { Postgres } from "./connection";
import type { StoreParts } from "./parts";
import { PostgresTables } from "./postgres-tables";
import { cancelSignIns } from "./sign-ins";

/** @throws ProxyError */
export async function openMembers(
  { postgres, stamps }: Pick<StoreParts, "postgres" | "stamps">,
  tokens: AccessTokens,
): Promise<StoredMembers> {
  const requests = new PostgresTables(postgres.requests);
  // Another server may add the first member: from then on every client needs a key.
  let isUsed = false;
  await stamps.follow("members", async () => {
    isUsed ||= (await requests.ask(sql`SELECT 1 AS one FROM dragoman.members LIMIT 1`)).length > 0;
  });
  return new StoredMembers({
    tables: new PostgresTables(postgres),
    requests,
    tokens,
    wasUsed: () => isUsed,
    hasTables: () => true,
    accountsOf: (ids) => accountsOf(postgres, ids),
    signOut: (tables, member) => tables.ask(sql`DELETE FROM dragoman.accounts WHERE member = ${member}`),
    cancelSignIns,
    // This server is to know at once what it has changed.
    changed: () => Promise.all([stamps.tryCatchUp("accounts"), stamps.tryCatchUp("sign_ins")]),
  });
}

interface MemberAccountRow {
  member: string;
  key: string;
  paused: boolean;
  state: SharedState | null;
}

async function accountsOf(postgres: Postgres, ids: readonly string[]): Promise<Map<string, MemberAccount[]>> {
  const rows = await postgres.ask(
    (sql) => sql<MemberAccountRow[]>`SELECT member, key, paused, state FROM dragoman.accounts
      LEFT JOIN dragoman.account_states AS known ON account = key AND known.sign_in = accounts.sign_in
      WHERE member IN (SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb))
      ORDER BY place, added_at_ms, key`,
  );
  const byMember = Map.groupBy(rows, ({ member }) => member);
  return new Map([...byMember].map(([member, own]) => [member, own.map((row) => shownAccount(row, Date.now()))]));
}

/** A state that is over by now counts as ready: the servers find out with the next request. */
function shownAccount({ key, paused, state }: MemberAccountRow, now: number): MemberAccount {
  const known = state?.account ?? { name: "ready" };
  const isOver = "until" in known && known.until <= now;
  return { account_key: key, state: paused ? "paused" : isOver ? "ready" : known.name };
}
