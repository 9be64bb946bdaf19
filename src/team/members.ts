/** Members, their keys and invitations in Postgres. Each server holds members and hashes of keys in memory, and follows their changes. */
import { randomBytes } from "node:crypto";
import type { TransactionSQL } from "bun";
import { keyName } from "../config/key-schema";
import { ProxyError } from "../lib/errors";
import { dayMs } from "../lib/format";
import { sha256 } from "../lib/net/in/credentials";
import type { SharedState } from "../people/accounts/account-sync";
import type { AccessTokens } from "../people/keys/access-tokens";
import { type ClientKey, keyNotFound, newClientKey } from "../people/keys/client-keys";
import type { ChangedLimits } from "../people/keys/member-fields";
import type { Invitation, InvitationState, Member, MemberAccount, Members, WantedKey } from "../people/keys/members";
import { HeldTable } from "./held-table";
import {
  acceptInvitation,
  addInvitation,
  addKey,
  cancelSignIns,
  changeLimits,
  findInvitation,
  type MemberRow,
  memberColumns,
  memberOf,
  removeMember,
  requireMember,
  revokeKeys,
  withdrawOpen,
} from "./member-changes";
import type { StoreParts } from "./parts";
import type { FollowedTable } from "./schema";
import { lastRequestsOf, memberUsageIn } from "./statistics";

type Parts = Pick<StoreParts, "postgres" | "changes">;

interface KeyRow {
  sha256: Uint8Array;
  member: string;
  name: string;
  models: string[] | null;
  created_at_ms: number;
  expires_at_ms: number | null;
}

interface MemberAccountRow {
  member: string;
  key: string;
  paused: boolean;
  state: SharedState | null;
}

export class TeamMembers implements Members {
  readonly #parts: Parts;
  readonly #tokens: AccessTokens;
  readonly #members = new HeldTable<MemberRow, Member>();
  /** By their hashes in hexadecimal. */
  readonly #keys = new HeldTable<KeyRow, KeyRow>();
  readonly #listeners: (() => void)[] = [];
  /** The members by name, and the keys of each, until one is added, changed or removed. */
  #sorted: Member[] | undefined;
  #byMember: Map<string, KeyRow[]> | undefined;

  private constructor(parts: Parts, tokens: AccessTokens) {
    this.#parts = parts;
    this.#tokens = tokens;
  }

  /** Reads all members and keys, and follows them from now on. @throws ProxyError */
  static async open(parts: Parts, tokens: AccessTokens): Promise<TeamMembers> {
    const opened = new TeamMembers(parts, tokens);
    const changed = () => opened.#changed();
    await opened.#members.hold(parts, {
      ...{ table: "members", columns: memberColumns, isRemoved: "removed_at_ms IS NOT NULL" },
      ...{ keyOf: ({ id }) => id, read: memberOf, changed },
    });
    await opened.#keys.hold(parts, {
      ...{ table: "keys", columns: keyColumns, isRemoved: "revoked_at_ms IS NOT NULL" },
      ...{ keyOf: ({ sha256 }) => sha256.toHex(), read: (key) => key, changed },
    });
    return opened;
  }

  get needKeys(): boolean {
    return this.#members.wasUsed;
  }

  list(): readonly Member[] {
    this.#sorted ??= [...this.#members.values()].sort((one, other) => one.name.localeCompare(other.name));
    return this.#sorted;
  }

  find(id: string): Member | undefined {
    return this.#members.get(id);
  }

  named(name: string): Member | undefined {
    const alike = [...this.#members.values()].filter((member) => member.name.toLowerCase() === name.toLowerCase());
    // Postgres may have a locale in which `Ä` and `ä` are two letters, and then they are two members.
    return alike.find((member) => member.name === name) ?? alike[0];
  }

  keyCount(id: string): number {
    return this.#keysOf(id).length;
  }

  clientKeysOf(id: string): ClientKey[] {
    const member = this.#members.get(id);
    return member ? this.#keysOf(id).map((key) => clientKeyOf(key, member, Buffer.from(key.sha256))) : [];
  }

  findKey(sent: readonly string[]): ClientKey | undefined {
    // Found by its hash, so that timing reveals nothing of a key.
    for (const text of sent) {
      const token = this.#tokens.read(text);
      const key = this.keyWith(token?.digest ?? sha256(text));
      if (!key) continue;
      if (!token) return key;
      return {
        ...key,
        expiresAt: Math.min(token.until, key.expiresAt ?? Number.POSITIVE_INFINITY),
        isShortLived: true,
      };
    }
    return undefined;
  }

  hearOf(sent: readonly string[]): Promise<void> | undefined {
    const isNew = ({ digest, until }: { digest: Uint8Array; until: number }) =>
      until > Date.now() && !this.#keys.has(digest.toHex());
    const tokens = sent.map((text) => this.#tokens.read(text));
    return tokens.some((token) => token && isNew(token)) ? this.#parts.changes.catchUp("keys") : undefined;
  }

  keyWith(digest: Uint8Array): ClientKey | undefined {
    const hash = digest.toHex();
    const key = this.#keys.get(hash);
    const member = key && this.#members.get(key.member);
    if (!member) return undefined;
    const isRevoked = () => !this.#keys.has(hash);
    return Object.assign(clientKeyOf(key, member, Buffer.from(digest)), { isRevoked });
  }

  follow(changed: () => void): void {
    this.#listeners.push(changed);
  }

  async invite(given: string, limits: ChangedLimits = {}): Promise<Invitation> {
    const name = checkedName(given);
    const code = randomBytes(24).toString("base64url");
    const invited = await this.#transact(
      (sql) => addInvitation(sql, { name, limits, digest: sha256(code) }),
      "members",
    );
    return { ...invited, code };
  }

  invitationWith(code: string): Promise<InvitationState | undefined> {
    return this.#parts.postgres.ask((sql) => findInvitation(sql, sha256(code)));
  }

  openInvitations(): Promise<{ member: string; expiresAt: number }[]> {
    return this.#parts.postgres.ask(async (sql) => [
      ...(await sql<{ member: string; expiresAt: number }[]>`SELECT member,
        floor(extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAt"
        FROM dragoman.invitations WHERE used_at IS NULL AND expires_at > now() ORDER BY expires_at`),
    ]);
  }

  async accountsOf(ids: readonly string[]): Promise<Map<string, MemberAccount[]>> {
    const rows = await this.#parts.postgres.ask(
      (sql) => sql<MemberAccountRow[]>`SELECT member, key, paused, state FROM dragoman.accounts
        LEFT JOIN dragoman.account_states AS known ON account = key AND known.sign_in = accounts.sign_in
        WHERE member IN (SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)::uuid)
          AND removed_at_ms IS NULL ORDER BY place, added_at_ms, key`,
    );
    const byMember = Map.groupBy(rows, ({ member }) => member);
    return new Map([...byMember].map(([member, own]) => [member, own.map((row) => shownAccount(row, Date.now()))]));
  }

  usage(since: number): ReturnType<Members["usage"]> {
    return memberUsageIn(this.#parts.postgres, since);
  }

  lastRequests(ids: readonly string[]): Promise<Map<string, number>> {
    return lastRequestsOf(this.#parts.postgres, ids);
  }

  withdrawInvitations(name: string): Promise<number> {
    return this.#parts.postgres.transact(async (sql) => withdrawOpen(sql, (await requireMember(sql, name)).id));
  }

  async accept(code: string): Promise<{ member: Member; name: string; key: string } | undefined> {
    const key = newClientKey();
    const accepted = await this.#transact((sql) => acceptInvitation(sql, sha256(code), sha256(key)), "keys");
    return accepted && { ...accepted, key };
  }

  setLimits(name: string, limits: ChangedLimits): Promise<Member> {
    return this.#transact((sql) => changeLimits(sql, name, limits), "members");
  }

  async createKey(id: string, wanted: WantedKey): Promise<string> {
    const key = newClientKey();
    await this.#transact((sql) => addKey(sql, id, { ...wanted, digest: sha256(key) }), "keys");
    return key;
  }

  revokeKey(id: string, name: string): Promise<void> {
    return this.#transact(async (sql) => {
      const which = sql`member = ${id} AND lower(name) = lower(${name})`;
      if ((await revokeKeys(sql, which)) === 0) throw keyNotFound(name);
      await cancelSignIns(sql, id);
    }, "keys");
  }

  remove(name: string): Promise<Member> {
    return this.#transact((sql) => removeMember(sql, name), "keys", "members", "accounts", "sign_ins");
  }

  /** @param changed The tables of which this server is to know the change when it settles. */
  async #transact<T>(work: (sql: TransactionSQL) => Promise<T>, ...changed: FollowedTable[]): Promise<T> {
    const result = await this.#parts.postgres.transact(work);
    await Promise.all(changed.map((table) => this.#parts.changes.tryCatchUp(table)));
    return result;
  }

  #keysOf(id: string): KeyRow[] {
    this.#byMember ??= Map.groupBy(this.#keys.values(), ({ member }) => member);
    return this.#byMember.get(id) ?? [];
  }

  #changed(): void {
    [this.#sorted, this.#byMember] = [undefined, undefined];
    for (const changed of this.#listeners) changed();
  }
}

const keyColumns =
  "sha256, member, name, models, created_at_ms::float8 AS created_at_ms, expires_at_ms::float8 AS expires_at_ms";

const clientKeyOf = (key: KeyRow, member: Member, digest: Buffer): ClientKey => ({
  // The name of a key in the config has no slash.
  name: `${member.name}/${key.name}`,
  member: member.id,
  digest,
  models: key.models,
  memberModels: member.models,
  expiresAt: expiryOf(key, member),
  limited: key.models !== null || member.models !== null,
});

function expiryOf({ created_at_ms, expires_at_ms }: KeyRow, { key_days }: Member): number | null {
  if (key_days === null) return expires_at_ms;
  return Math.min(expires_at_ms ?? Number.POSITIVE_INFINITY, created_at_ms + key_days * dayMs);
}

/** A state that is over by now counts as ready: the servers find out with the next request. */
function shownAccount({ key, paused, state }: MemberAccountRow, now: number): MemberAccount {
  const known = state?.account ?? { name: "ready" };
  const isOver = "until" in known && known.until <= now;
  return { account_key: key, state: paused ? "paused" : isOver ? "ready" : known.name };
}

/** The rule for names of keys, of which a member's name is a part. @throws ProxyError `invalid_request` */
function checkedName(name: string): string {
  const read = keyName.safeParse(name);
  if (read.success) return read.data;
  throw new ProxyError("invalid_request", `The member's name ${read.error.issues[0]?.message}.`, { param: "name" });
}
