/** Members, their keys and invitations in Postgres. Each server holds members and hashes of keys in memory, and follows their changes. */
import { randomBytes } from "node:crypto";
import type { TransactionSQL } from "bun";
import type { SharedState } from "../accounts/account-sync";
import { keyName } from "../config/key-schema";
import { ProxyError } from "../errors";
import { dayMs } from "../format";
import type { AccessTokens } from "../keys/access-tokens";
import { type ClientKey, keyNotFound, newClientKey } from "../keys/client-keys";
import type { ChangedLimits } from "../keys/member-fields";
import type { Invitation, InvitationState, Member, MemberAccount, Members, WantedKey } from "../keys/members";
import { sha256 } from "../net/in/credentials";
import { announceChange, type Changes } from "./changes";
import type { Postgres } from "./connection";
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
  nowMs,
  removeMember,
  requireMember,
  withdrawOpen,
} from "./member-changes";
import type { FollowedTable } from "./schema";
import { lastRequestsOf, memberUsageIn } from "./statistics";

interface KeyRow {
  sha256: Uint8Array;
  member: string;
  name: string;
  models: string[] | null;
  created_at_ms: number;
  expires_at_ms: number | null;
  revoked: boolean;
  revision: number;
}

interface MemberAccountRow {
  member: string;
  key: string;
  paused: boolean;
  state: SharedState | null;
}

export class TeamMembers implements Members {
  readonly #postgres: Postgres;
  readonly #changes: Changes;
  readonly #tokens: AccessTokens;
  readonly #members = new Map<string, Member>();
  /** The keys of this map are hashes in hexadecimal. */
  readonly #keys = new Map<string, KeyRow>();
  /** The keys of each member, by their hashes too. */
  readonly #byMember = new Map<string, Map<string, KeyRow>>();
  readonly #listeners: (() => void)[] = [];
  #needKeys = false;
  /** The members by name, until one is added, changed or removed. */
  #sorted: Member[] | undefined;
  /** The ids of all that were ever removed: a failover may have lost it, and then it is done again. */
  readonly #removed = new Set<string>();
  /** The hashes of all keys that were ever revoked, for the same reason. */
  readonly #revoked = new Set<string>();

  private constructor(postgres: Postgres, changes: Changes, tokens: AccessTokens) {
    this.#postgres = postgres;
    this.#changes = changes;
    this.#tokens = tokens;
  }

  /** Reads all members and keys, and follows them from now on. @throws ProxyError */
  static async open(postgres: Postgres, changes: Changes, tokens: AccessTokens): Promise<TeamMembers> {
    const opened = new TeamMembers(postgres, changes, tokens);
    const readMembers = (since: number) => opened.#readMembers(since);
    const readKeys = (since: number) => opened.#readKeys(since);
    changes.follow("members", await readMembers(0), readMembers);
    changes.follow("keys", await readKeys(0), readKeys);
    return opened;
  }

  get needKeys(): boolean {
    return this.#needKeys;
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
      until > Date.now() && !this.#keys.has(digest.toHex()) && !this.#revoked.has(digest.toHex());
    const tokens = sent.map((text) => this.#tokens.read(text));
    return tokens.some((token) => token && isNew(token)) ? this.#changes.catchUp("keys") : undefined;
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
    return this.#postgres.ask((sql) => findInvitation(sql, sha256(code)));
  }

  openInvitations(): Promise<{ member: string; expiresAt: number }[]> {
    return this.#postgres.ask(async (sql) => [
      ...(await sql<{ member: string; expiresAt: number }[]>`SELECT member,
        floor(extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAt"
        FROM dragoman.invitations WHERE used_at IS NULL AND expires_at > now() ORDER BY expires_at`),
    ]);
  }

  async accountsOf(ids: readonly string[]): Promise<Map<string, MemberAccount[]>> {
    const rows = await this.#postgres.ask(
      (sql) => sql<MemberAccountRow[]>`SELECT member, key, paused, state FROM dragoman.accounts
        LEFT JOIN dragoman.account_states AS known ON account = key AND known.sign_in = accounts.sign_in
        WHERE member IN (SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)::uuid)
          AND removed_at_ms IS NULL ORDER BY place, added_at_ms, key`,
    );
    const byMember = Map.groupBy(rows, ({ member }) => member);
    return new Map([...byMember].map(([member, own]) => [member, own.map((row) => shownAccount(row, Date.now()))]));
  }

  usage(since: number): ReturnType<Members["usage"]> {
    return memberUsageIn(this.#postgres, since);
  }

  lastRequests(ids: readonly string[]): Promise<Map<string, number>> {
    return lastRequestsOf(this.#postgres, ids);
  }

  withdrawInvitations(name: string): Promise<number> {
    return this.#postgres.transact(async (sql) => withdrawOpen(sql, (await requireMember(sql, name)).id));
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
      const revision = await announceChange(sql, "keys");
      const revoked = await sql`UPDATE dragoman.keys SET revision = ${revision}, revoked_at_ms = ${nowMs(sql)}
        WHERE member = ${id} AND lower(name) = lower(${name}) AND revoked_at_ms IS NULL RETURNING name`;
      if (revoked.length === 0) throw keyNotFound(name);
      await cancelSignIns(sql, id);
    }, "keys");
  }

  remove(name: string): Promise<Member> {
    return this.#transact((sql) => removeMember(sql, name), "keys", "members", "accounts", "sign_ins");
  }

  /** @param changed The tables of which this server is to know the change when it settles. */
  async #transact<T>(work: (sql: TransactionSQL) => Promise<T>, ...changed: FollowedTable[]): Promise<T> {
    const result = await this.#postgres.transact(work);
    await Promise.all(changed.map((table) => this.#changes.catchUp(table)));
    return result;
  }

  #keysOf(id: string): KeyRow[] {
    return [...(this.#byMember.get(id)?.values() ?? [])];
  }

  async #readMembers(since: number): Promise<number> {
    const rows = await this.#postgres.ask(
      (sql) => sql<(MemberRow & { removed: boolean; revision: number })[]>`SELECT ${memberColumns(sql)},
        removed_at_ms IS NOT NULL AS removed, revision::float8 AS revision
        FROM dragoman.members WHERE revision > ${since} ORDER BY revision`,
    );
    if (rows.length > 0) this.#needKeys = true;
    this.#sorted = undefined;
    if (since === 0) this.#members.clear();
    const returned = rows.filter((row) => !row.removed && this.#removed.has(row.id));
    for (const row of rows)
      if (row.removed || this.#removed.has(row.id)) {
        this.#members.delete(row.id);
        this.#removed.add(row.id);
      } else this.#members.set(row.id, memberOf(row));
    if (rows.length > 0 || since === 0) for (const changed of this.#listeners) changed();
    for (const { name } of returned)
      await this.#postgres.transact((sql) => removeMember(sql, name)).catch(ignoreRemoved);
    return rows.at(-1)?.revision ?? since;
  }

  async #readKeys(since: number): Promise<number> {
    const rows = await this.#postgres.ask(
      (sql) => sql<KeyRow[]>`SELECT sha256, member, name, models, created_at_ms::float8 AS created_at_ms,
        expires_at_ms::float8 AS expires_at_ms, revoked_at_ms IS NOT NULL AS revoked, revision::float8 AS revision
        FROM dragoman.keys WHERE revision > ${since} ORDER BY revision`,
    );
    if (since === 0) for (const map of [this.#keys, this.#byMember]) map.clear();
    const returned: Uint8Array[] = [];
    for (const row of rows) {
      const digest = row.sha256.toHex();
      if (row.revoked) this.#revoked.add(digest);
      else if (this.#revoked.has(digest)) returned.push(row.sha256);
      const ofMember = this.#byMember.get(row.member) ?? new Map<string, KeyRow>();
      this.#byMember.set(row.member, ofMember);
      for (const map of [this.#keys, ofMember])
        if (this.#revoked.has(digest)) map.delete(digest);
        else map.set(digest, row);
      if (ofMember.size === 0) this.#byMember.delete(row.member);
    }
    if (rows.length > 0 || since === 0) for (const changed of this.#listeners) changed();
    if (returned.length > 0) await this.#postgres.transact((sql) => revokeAgain(sql, returned));
    return rows.at(-1)?.revision ?? since;
  }
}

async function revokeAgain(sql: TransactionSQL, digests: readonly Uint8Array[]): Promise<void> {
  const revision = await announceChange(sql, "keys");
  for (const digest of digests)
    await sql`UPDATE dragoman.keys SET revision = ${revision}, revoked_at_ms = ${nowMs(sql)}
      WHERE sha256 = ${Buffer.from(digest)} AND revoked_at_ms IS NULL`;
}

/** Another server may have been faster. */
function ignoreRemoved(thrown: unknown): void {
  if (!(thrown instanceof ProxyError && thrown.kind === "not_found")) throw thrown;
}

const clientKeyOf = (key: KeyRow, member: Member, digest: Buffer): ClientKey => ({
  // The name of a key in the config has no slash.
  name: `${member.name}/${key.name}`,
  member: member.id,
  digest,
  models: key.models,
  memberModels: member.models,
  modelAliases: {},
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
