/** The accounts in Postgres. Each server has all of them in memory, since each is a part of it: with its token, its state and its models. */
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
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";
import { lockTable } from "./stamps";

/** What a member has chosen for an account. */
interface ChosenColumns {
  paused: boolean;
  place: number | null;
}

interface HeldAccount extends ChosenColumns {
  account: SavedAccount;
  /** What its secret was read from. */
  sealed: Buffer;
}

interface AccountRow extends ChosenColumns {
  key: string;
  host: string;
  login: string;
  member: string | null;
  app: string;
  mode: SavedAccount["mode"];
  kind: "person" | "app";
  sealed_token: Uint8Array;
  added_at_ms: number;
}

const columns =
  "key, host, login, member, app, mode, kind, sealed_token, paused, place, added_at_ms::float8 AS added_at_ms";

export class TeamAccounts implements AccountStore {
  readonly choices: AccountChoices = {
    isPaused: (key) => this.#accounts.get(key)?.paused ?? false,
    placeOf: (key) => this.#accounts.get(key)?.place ?? undefined,
    pause: (member, key, paused) =>
      this.#change(async (sql) => {
        const changed = await sql`UPDATE dragoman.accounts SET paused = ${paused}
          WHERE key = ${key} AND member = ${member} RETURNING key`;
        if (changed.length === 0) throw accountNotFound(key);
      }),
    arrange: (member, keys) =>
      this.#change(
        (sql) => sql`UPDATE dragoman.accounts SET place = wanted.place
          FROM jsonb_array_elements_text(${JSON.stringify(keys)}::text::jsonb) WITH ORDINALITY AS wanted (key, place)
          WHERE accounts.key = wanted.key AND member = ${member}`,
      ),
  };
  readonly #parts: StoreParts;
  /** By their keys. */
  #accounts = new Map<string, HeldAccount>();
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
    await parts.stamps.follow("accounts", () => opened.#read());
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
    await this.#parts.stamps.tryCatchUp("accounts");
    return outcome;
  }

  async remove(which: string): Promise<{ removed: SavedAccount; namesake?: SavedAccount }> {
    const { found, namesake } = this.find(which);
    await this.#change((sql) => sql`DELETE FROM dragoman.accounts WHERE key = ${accountKeyOf(found)}`);
    return { removed: found, namesake };
  }

  reload(): Promise<void> {
    return this.#parts.stamps.catchUp("accounts");
  }

  stamp(): string {
    return String(this.#changes);
  }

  follow(changed: () => void): void {
    this.#listeners.push(changed);
  }

  async #change(work: (sql: SQL) => Promise<unknown>): Promise<void> {
    await this.#parts.postgres.transact(work);
    await this.#parts.stamps.tryCatchUp("accounts");
  }

  async #read(): Promise<void> {
    const rows = await this.#parts.postgres.requests.ask(
      (sql) => sql<AccountRow[]>`SELECT ${sql.unsafe(columns)} FROM dragoman.accounts`,
    );
    const held = rows.map((row) => [row.key, this.#heldOf(row)] as const);
    this.#accounts = new Map(held.flatMap(([key, account]) => (account ? [[key, account]] : [])));
    this.#sorted = undefined;
    this.#changes += 1;
    for (const changed of this.#listeners) changed();
  }

  #heldOf({ paused, place, ...row }: AccountRow): HeldAccount | undefined {
    const before = this.#accounts.get(row.key);
    // A sign-in that is known is the same account, and need not be opened again.
    if (before?.sealed.equals(row.sealed_token) && before.account.member === (row.member ?? undefined))
      return { ...before, paused, place };
    try {
      const { host, login, member, app, mode, kind, added_at_ms: addedAt } = row;
      const secret = withSecret(this.#parts.seals.open(row.sealed_token, aboutToken(row.key)), kind);
      const account = { host, login, app, mode, ...secret, addedAt, ...(member !== null && { member }) };
      return { account, sealed: Buffer.from(row.sealed_token), paused, place };
    } catch (thrown) {
      this.#parts.logger.error(`The account ${row.key} cannot be used.`, thrown);
      return undefined;
    }
  }
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
  await lockTable(sql, "accounts");
  const [before] = await sql<{ member: string | null }[]>`SELECT member FROM dragoman.accounts WHERE key = ${key}`;
  const member = account.member ?? null;
  if (before && before.member !== member) throw belongsToAnother(account);
  if (member !== null) await requireMember(sql, member);
  await holdSealKey(sql, seals);
  const kind = kindOf(account);
  if (kind === "copilot-cli")
    throw new ProxyError(
      "conflict",
      `The account ${account.login} of the Copilot CLI belongs to one machine, and a database to several.`,
      { code: "account_of_machine" },
    );
  const secret = secretOf(account);
  const sealed = seals.seal(secret, aboutToken(key));
  const { host, login, app, mode, addedAt } = account;
  const signIn = signInOf(secret);
  await sql`INSERT INTO dragoman.accounts
      (key, host, login, member, app, mode, kind, sign_in, sealed_token, added_at_ms)
    VALUES (${key}, ${host}, ${login}, ${member}, ${app}, ${mode}, ${kind}, ${signIn}, ${sealed},
      -- The clock may have been set back since the other accounts were added.
      greatest(${addedAt}::bigint, (SELECT max(added_at_ms) + 1 FROM dragoman.accounts)))
    ON CONFLICT (key) DO UPDATE SET login = excluded.login, member = excluded.member, app = excluded.app,
      mode = excluded.mode, kind = excluded.kind, sign_in = excluded.sign_in, sealed_token = excluded.sealed_token`;
  // The state and the Copilot token of the old sign-in do not apply to the new one.
  await sql`DELETE FROM dragoman.copilot_tokens WHERE account = ${key}`;
  await sql`DELETE FROM dragoman.account_states WHERE account = ${key}`;
  return before ? "replaced" : "added";
}
