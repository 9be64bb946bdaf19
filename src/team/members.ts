/** Members, their keys and invitations in Postgres. Each server holds members and hashes of keys in memory, and follows their changes. */
import { randomBytes } from "node:crypto";
import type { TransactionSQL } from "bun";
import { keyName } from "../config/key-schema";
import { ProxyError } from "../errors";
import { dayMs } from "../format";
import { type ClientKey, keyNotFound, newClientKey } from "../keys/client-keys";
import type { Member, Members } from "../keys/members";
import { sha256 } from "../net/in/credentials";
import { announceChange, type Changes } from "./changes";
import type { Postgres } from "./connection";
import { memberAccountsIn } from "./member-accounts";
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
import { lastRequestsOf, memberUsageIn } from "./member-usage";

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

/** Reads all members and keys, and follows them from now on. @throws ProxyError */
export async function openPostgresMembers(postgres: Postgres, changes: Changes): Promise<Members> {
  const members = new Map<string, Member>();
  /** By the hash in hexadecimal. */
  const keys = new Map<string, KeyRow>();
  /** The keys of each member, by their hashes too. */
  const byMember = new Map<string, Map<string, KeyRow>>();
  const listeners: (() => void)[] = [];
  let needKeys = false;
  /** By name, until a member is added, changed or removed. */
  let sorted: Member[] | undefined;
  /** Ids and hashes of all that were ever removed and revoked: a failover may have lost it, and then it is done again. */
  const [removed, revoked] = [new Set<string>(), new Set<string>()];

  const readMembers = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<(MemberRow & { removed: boolean; revision: number })[]>`SELECT ${memberColumns(sql)},
        removed_at_ms IS NOT NULL AS removed, revision::float8 AS revision
        FROM dragoman.members WHERE revision > ${since} ORDER BY revision`,
    );
    if (rows.length > 0) needKeys = true;
    sorted = undefined;
    if (since === 0) members.clear();
    const returned = rows.filter((row) => !row.removed && removed.has(row.id));
    for (const row of rows)
      if (row.removed || removed.has(row.id)) {
        members.delete(row.id);
        removed.add(row.id);
      } else members.set(row.id, memberOf(row));
    if (rows.length > 0 || since === 0) for (const changed of listeners) changed();
    for (const { name } of returned) await postgres.transact((sql) => removeMember(sql, name)).catch(ignoreRemoved);
    return rows.at(-1)?.revision ?? since;
  };
  const readKeys = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<KeyRow[]>`SELECT sha256, member, name, models, created_at_ms::float8 AS created_at_ms,
        expires_at_ms::float8 AS expires_at_ms, revoked_at_ms IS NOT NULL AS revoked, revision::float8 AS revision
        FROM dragoman.keys WHERE revision > ${since} ORDER BY revision`,
    );
    if (since === 0) for (const map of [keys, byMember]) map.clear();
    const returned: Uint8Array[] = [];
    for (const row of rows) {
      const digest = row.sha256.toHex();
      if (row.revoked) revoked.add(digest);
      else if (revoked.has(digest)) returned.push(row.sha256);
      const ofMember = byMember.get(row.member) ?? new Map<string, KeyRow>();
      byMember.set(row.member, ofMember);
      for (const map of [keys, ofMember])
        if (revoked.has(digest)) map.delete(digest);
        else map.set(digest, row);
      if (ofMember.size === 0) byMember.delete(row.member);
    }
    if (rows.length > 0 || since === 0) for (const changed of listeners) changed();
    if (returned.length > 0) await postgres.transact((sql) => revokeAgain(sql, returned));
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow("members", await readMembers(0), readMembers);
  changes.follow("keys", await readKeys(0), readKeys);

  const keyWith = (digest: Uint8Array) => {
    const hash = digest.toHex();
    const key = keys.get(hash);
    const member = key && members.get(key.member);
    if (!member) return undefined;
    return Object.assign(clientKeyOf(key, member, Buffer.from(digest)), { isRevoked: () => !keys.has(hash) });
  };
  const keysOf = (id: string) => [...(byMember.get(id)?.values() ?? [])];

  return {
    list() {
      sorted ??= [...members.values()].sort((one, other) => one.name.localeCompare(other.name));
      return sorted;
    },
    find: (id) => members.get(id),
    named(name) {
      const alike = [...members.values()].filter((member) => member.name.toLowerCase() === name.toLowerCase());
      // Postgres may have a locale in which `Ä` and `ä` are two letters, and then they are two members.
      return alike.find((member) => member.name === name) ?? alike[0];
    },
    keyCount: (id) => keysOf(id).length,
    clientKeysOf(id) {
      const member = members.get(id);
      return member ? keysOf(id).map((key) => clientKeyOf(key, member, Buffer.from(key.sha256))) : [];
    },
    findKey(sent) {
      // Found by its hash, so that timing reveals nothing of a key.
      for (const text of sent) {
        const key = keyWith(sha256(text));
        if (key) return key;
      }
      return undefined;
    },
    keyWith,
    follow: (changed) => void listeners.push(changed),
    get needKeys() {
      return needKeys;
    },
    async invite(given, limits = {}) {
      const name = checkedName(given);
      const code = randomBytes(24).toString("base64url");
      const invited = await postgres.transact((sql) => addInvitation(sql, { name, limits, digest: sha256(code) }));
      await changes.catchUp("members");
      return { ...invited, code };
    },
    invitationWith: (code) => postgres.ask((sql) => findInvitation(sql, sha256(code))),
    openInvitations: () =>
      postgres.ask(async (sql) => [
        ...(await sql<{ member: string; expiresAt: number }[]>`SELECT member,
          floor(extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAt"
          FROM dragoman.invitations WHERE used_at IS NULL AND expires_at > now() ORDER BY expires_at`),
      ]),
    accountsOf: (ids) => memberAccountsIn(postgres, ids, Date.now()),
    usage: (since) => memberUsageIn(postgres, since),
    lastRequests: (ids) => lastRequestsOf(postgres, ids),
    withdrawInvitations: (name) =>
      postgres.transact(async (sql) => withdrawOpen(sql, (await requireMember(sql, name)).id)),
    async accept(code) {
      const key = newClientKey();
      const accepted = await postgres.transact((sql) => acceptInvitation(sql, sha256(code), sha256(key)));
      await changes.catchUp("keys");
      return accepted && { ...accepted, key };
    },
    async setLimits(name, limits) {
      const member = await postgres.transact((sql) => changeLimits(sql, name, limits));
      await changes.catchUp("members");
      return member;
    },
    async createKey(id, wanted) {
      const key = newClientKey();
      await postgres.transact((sql) => addKey(sql, id, { ...wanted, digest: sha256(key) }));
      await changes.catchUp("keys");
      return key;
    },
    async revokeKey(id, name) {
      await postgres.transact(async (sql) => {
        const revision = await announceChange(sql, "keys");
        const revoked = await sql`UPDATE dragoman.keys SET revision = ${revision}, revoked_at_ms = ${nowMs(sql)}
          WHERE member = ${id} AND lower(name) = lower(${name}) AND revoked_at_ms IS NULL RETURNING name`;
        if (revoked.length === 0) throw keyNotFound(name);
        await cancelSignIns(sql, id);
      });
      await changes.catchUp("keys");
    },
    async remove(name) {
      const removed = await postgres.transact((sql) => removeMember(sql, name));
      await Promise.all((["keys", "members", "accounts", "sign_ins"] as const).map((table) => changes.catchUp(table)));
      return removed;
    },
  };
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

function expiryOf({ created_at_ms, expires_at_ms }: KeyRow, { keyDays }: Member): number | null {
  if (keyDays === null) return expires_at_ms;
  return Math.min(expires_at_ms ?? Number.POSITIVE_INFINITY, created_at_ms + keyDays * dayMs);
}

/** The rule for names of keys, of which a member's name is a part. @throws ProxyError `invalid_request` */
function checkedName(name: string): string {
  const read = keyName.safeParse(name);
  if (read.success) return read.data;
  throw new ProxyError("invalid_request", `The member's name ${read.error.issues[0]?.message}.`, { param: "name" });
}
