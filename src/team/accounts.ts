/** The accounts in Postgres. Each server holds all of them in memory, and follows their changes. */
import type { SQL, TransactionSQL } from "bun";
import { ProxyError } from "../lib/errors";
import { aboutToken, type Seals } from "../lib/seals";
import {
  type AccountChoices,
  type AccountStore,
  accountKeyOf,
  accountNotFound,
  belongsToAnother,
  checkedAccount,
  findAmong,
  inRegistrationOrder,
  kindOf,
  type SavedAccount,
  secretOf,
  withSecret,
} from "../people/accounts/account-store";
import { signInOf } from "../people/accounts/account-sync";
import { announceChange } from "./changes";
import { HeldTable } from "./held-table";
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";

/** What a member has chosen for an account. */
interface ChosenColumns {
  paused: boolean;
  place: number | null;
}

interface HeldAccount extends ChosenColumns {
  account: SavedAccount;
}

interface AccountRow extends ChosenColumns {
  key: string;
  host: string;
  login: string;
  member: string | null;
  app: string;
  mode: SavedAccount["mode"];
  kind: "person" | "app";
  sealed_token: Uint8Array | null;
  added_at_ms: number;
}

const columns =
  "key, host, login, member, app, mode, kind, sealed_token, paused, place, added_at_ms::float8 AS added_at_ms";

export class TeamAccounts implements AccountStore {
  readonly choices: AccountChoices = {
    isPaused: (key) => this.#accounts.get(key)?.paused ?? false,
    placeOf: (key) => this.#accounts.get(key)?.place ?? undefined,
    pause: (member, key, paused) =>
      this.#change(async (sql, revision) => {
        const changed = await sql`UPDATE dragoman.accounts SET paused = ${paused}, revision = ${revision}
          WHERE key = ${key} AND member = ${member} AND removed_at_ms IS NULL RETURNING key`;
        if (changed.length === 0) throw accountNotFound(key);
      }),
    arrange: (member, keys) =>
      this.#change(
        (sql, revision) => sql`UPDATE dragoman.accounts SET place = wanted.place, revision = ${revision}
          FROM jsonb_array_elements_text(${JSON.stringify(keys)}::text::jsonb) WITH ORDINALITY AS wanted (key, place)
          WHERE accounts.key = wanted.key AND member = ${member} AND removed_at_ms IS NULL`,
      ),
  };
  readonly #parts: StoreParts;
  readonly #accounts = new HeldTable<AccountRow, HeldAccount>();
  readonly #listeners: (() => void)[] = [];
  #sorted: SavedAccount[] | undefined;
  /** How often accounts were changed, as far as this server knows. */
  #changes = 0;

  private constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  /** Reads all accounts, and follows them from now on. @throws ProxyError */
  static async open(parts: StoreParts): Promise<TeamAccounts> {
    const opened = new TeamAccounts(parts);
    await opened.#accounts.hold(parts, {
      ...{ table: "accounts", columns, isRemoved: "removed_at_ms IS NOT NULL", keyOf: ({ key }) => key },
      read: (row) => opened.#heldOf(row),
      changed: () => opened.#changed(),
    });
    return opened;
  }

  load(): SavedAccount[] {
    this.#sorted ??= inRegistrationOrder([...this.#accounts.values()].map(({ account }) => account));
    return this.#sorted;
  }

  find(which: string): { found: SavedAccount; namesake?: SavedAccount } {
    return findAmong(this.load(), which);
  }

  async prepare(): Promise<void> {
    await this.#parts.postgres.ask((sql) => sql`SELECT 1`);
  }

  async add(given: SavedAccount): Promise<"added" | "replaced"> {
    const account = checkedAccount(given);
    const outcome = await this.#parts.postgres.transact((sql) => save(sql, this.#parts.seals, account));
    await this.#parts.changes.tryCatchUp("accounts");
    return outcome;
  }

  async remove(which: string): Promise<{ removed: SavedAccount; namesake?: SavedAccount }> {
    const { found, namesake } = this.find(which);
    await this.#change((sql, revision) => signOutAccounts(sql, sql`key = ${accountKeyOf(found)}`, revision));
    return { removed: found, namesake };
  }

  reload(): Promise<void> {
    return this.#parts.changes.catchUp("accounts");
  }

  stamp(): string {
    return String(this.#changes);
  }

  follow(changed: () => void): void {
    this.#listeners.push(changed);
  }

  async #change(work: (sql: TransactionSQL, revision: number) => Promise<unknown>): Promise<void> {
    await this.#parts.postgres.transact(async (sql) => work(sql, await announceChange(sql, "accounts")));
    await this.#parts.changes.tryCatchUp("accounts");
  }

  #changed(): void {
    this.#sorted = undefined;
    this.#changes += 1;
    for (const changed of this.#listeners) changed();
  }

  #heldOf({ paused, place, ...row }: AccountRow): HeldAccount | undefined {
    try {
      const { host, login, member, app, mode, kind, added_at_ms: addedAt } = row;
      const secret = withSecret(this.#parts.seals.open(row.sealed_token!, aboutToken(row.key)), kind);
      const account = { host, login, app, mode, ...secret, addedAt, ...(member !== null && { member }) };
      return { account, paused, place };
    } catch (thrown) {
      this.#parts.logger.error(`The account ${row.key} cannot be used.`, thrown);
      return undefined;
    }
  }
}

/**
 * Deletes what the servers have of accounts. Their rows stay, so that every server learns of it.
 * @param which A condition on the rows of `dragoman.accounts`.
 */
export async function signOutAccounts(sql: TransactionSQL, which: SQL.Query<unknown>, revision: number): Promise<void> {
  await sql`DELETE FROM dragoman.copilot_tokens WHERE account IN (SELECT key FROM dragoman.accounts WHERE ${which})`;
  await sql`DELETE FROM dragoman.account_states WHERE account IN (SELECT key FROM dragoman.accounts WHERE ${which})`;
  await sql`UPDATE dragoman.accounts SET sealed_token = NULL, revision = ${revision},
    removed_at_ms = (extract(epoch FROM now()) * 1000)::bigint WHERE ${which}`;
}

/** The member may have been removed while the person was at GitHub. @throws ProxyError `not_found` */
async function requireMember(sql: TransactionSQL, member: string): Promise<void> {
  const [found] = await sql`SELECT 1 FROM dragoman.members WHERE id = ${member} AND removed_at_ms IS NULL`;
  if (!found)
    throw new ProxyError("not_found", "The account was not saved: its member was removed meanwhile.", {
      code: "member_not_found",
    });
}

async function save(sql: TransactionSQL, seals: Seals, account: SavedAccount): Promise<"added" | "replaced"> {
  const key = accountKeyOf(account);
  // Locks the table's revision, so that no other server adds an account meanwhile.
  const revision = await announceChange(sql, "accounts");
  const [before] = await sql<{ member: string | null; removed: boolean }[]>`SELECT member,
    removed_at_ms IS NOT NULL AS removed FROM dragoman.accounts WHERE key = ${key}`;
  const member = account.member ?? null;
  if (before && !before.removed && before.member !== member) throw belongsToAnother(account);
  if (member !== null) await requireMember(sql, member);
  await holdSealKey(sql, seals);
  const kind = kindOf(account);
  if (kind === "copilot-cli")
    throw new ProxyError(
      "conflict",
      `The account ${account.login} of the Copilot CLI belongs to one machine, and a database to several.`,
      {
        code: "account_of_machine",
      },
    );
  const secret = secretOf(account);
  const sealed = seals.seal(secret, aboutToken(key));
  const renewed = before !== undefined && !before.removed;
  const { host, login, app, mode, addedAt } = account;
  const signIn = signInOf(secret);
  await sql`INSERT INTO dragoman.accounts
      (key, host, login, member, app, mode, kind, sign_in, sealed_token, added_at_ms, revision)
    VALUES (${key}, ${host}, ${login}, ${member}, ${app}, ${mode}, ${kind}, ${signIn}, ${sealed},
      -- The clock may have been set back since the other accounts were added.
      greatest(${addedAt}::bigint, (SELECT max(added_at_ms) + 1 FROM dragoman.accounts)), ${revision})
    ON CONFLICT (key) DO UPDATE SET login = excluded.login, member = excluded.member, app = excluded.app,
      mode = excluded.mode, kind = excluded.kind, sign_in = excluded.sign_in, sealed_token = excluded.sealed_token,
      removed_at_ms = NULL,
      added_at_ms = CASE WHEN ${renewed} THEN accounts.added_at_ms ELSE excluded.added_at_ms END,
      paused = ${renewed} AND accounts.paused, place = CASE WHEN ${renewed} THEN accounts.place END,
      revision = excluded.revision`;
  // The state and the Copilot token of the old sign-in do not apply to the new one.
  await sql`DELETE FROM dragoman.copilot_tokens WHERE account = ${key}`;
  await sql`DELETE FROM dragoman.account_states WHERE account = ${key}`;
  return renewed ? "replaced" : "added";
}
