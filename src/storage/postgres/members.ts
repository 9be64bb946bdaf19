/** Members, their keys and invitations in Postgres. Each server holds members and hashes of keys in memory, and follows their changes. */
import { createHash, randomBytes } from "node:crypto";
import type { TransactionSQL } from "bun";
import { keyName } from "../../config/key-schema";
import { ProxyError } from "../../errors";
import { dayMs } from "../../format";
import type { ClientKey } from "../../keys/client-keys";
import type { Member, Members } from "../../keys/members";
import type { Changes } from "./changes";
import type { Postgres } from "./connection";
import type { FollowedTable } from "./schema";

interface MemberRow {
  id: string;
  name: string;
  created_at_ms: number;
  removed: boolean;
  revision: number;
}

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

const invitationMs = 7 * dayMs;

/** Reads all members and keys, and follows them from now on. @throws ProxyError */
export async function openPostgresMembers(postgres: Postgres, changes: Changes): Promise<Members> {
  const members = new Map<string, Member>();
  /** By the hash in hexadecimal. */
  const keys = new Map<string, KeyRow>();
  const listeners: (() => void)[] = [];
  let needKeys = false;

  const readMembers = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<MemberRow[]>`SELECT id, name, created_at_ms::float8 AS created_at_ms,
        removed_at_ms IS NOT NULL AS removed, revision::float8 AS revision
        FROM dragoman.members WHERE revision > ${since} ORDER BY revision`,
    );
    if (rows.length > 0) needKeys = true;
    for (const row of rows)
      if (row.removed) members.delete(row.id);
      else members.set(row.id, memberOf(row));
    if (rows.length > 0) for (const changed of listeners) changed();
    return rows.at(-1)?.revision ?? since;
  };
  const readKeys = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<KeyRow[]>`SELECT sha256, member, name, models, created_at_ms::float8 AS created_at_ms,
        expires_at_ms::float8 AS expires_at_ms, revoked_at_ms IS NOT NULL AS revoked, revision::float8 AS revision
        FROM dragoman.keys WHERE revision > ${since} ORDER BY revision`,
    );
    for (const row of rows)
      if (row.revoked) keys.delete(hex(row.sha256));
      else keys.set(hex(row.sha256), row);
    if (rows.length > 0) for (const changed of listeners) changed();
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow("members", await readMembers(0), readMembers);
  changes.follow("keys", await readKeys(0), readKeys);

  const keyWith = (digest: Uint8Array) => {
    const key = keys.get(hex(digest));
    const member = key && members.get(key.member);
    return key && member && clientKeyOf(key, member, Buffer.from(digest));
  };
  const keysOf = (id: string) => [...keys.values()].filter(({ member }) => member === id);

  return {
    list: () => [...members.values()].sort((one, other) => one.name.localeCompare(other.name)),
    find: (id) => members.get(id),
    keysOf: (id) => keysOf(id).map(({ name, created_at_ms: createdAt }) => ({ name, createdAt })),
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
    async invite(given) {
      const name = checkedName(given);
      const code = randomBytes(24).toString("base64url");
      const expiresAt = Date.now() + invitationMs;
      const invited = await postgres.transact(async (sql) => {
        const known = await findByName(sql, name);
        const member = known ?? (await addMember(sql, name));
        await sql`INSERT INTO dragoman.invitations (sha256, member, expires_at)
          VALUES (${sha256(code)}, ${member.id}, now() + make_interval(secs => ${invitationMs / 1_000}))`;
        return { member, isKnown: known !== undefined };
      });
      await changes.catchUp("members");
      return { ...invited, code, expiresAt };
    },
    async invitedBy(code) {
      const [row] = await postgres.ask(
        (sql) => sql<MemberRow[]>`SELECT id, name, created_at_ms::float8 AS created_at_ms
          FROM dragoman.invitations JOIN dragoman.members ON id = member
          WHERE sha256 = ${sha256(code)} AND used_at IS NULL AND expires_at > now() AND removed_at_ms IS NULL`,
      );
      return row && memberOf(row);
    },
    async accept(code) {
      const key = `drg_${randomBytes(32).toString("base64url")}`;
      const accepted = await postgres.transact(async (sql) => {
        // Of two that accept at once, the second waits for this row and then finds it used.
        const [row] = await sql<MemberRow[]>`UPDATE dragoman.invitations SET used_at = now() FROM dragoman.members
          WHERE sha256 = ${sha256(code)} AND used_at IS NULL AND expires_at > now() AND id = member
            AND removed_at_ms IS NULL
          RETURNING id, members.name, created_at_ms::float8 AS created_at_ms`;
        return row && { member: memberOf(row), name: await addKey(sql, row.id, sha256(key)) };
      });
      await changes.catchUp("keys");
      return accepted && { ...accepted, key };
    },
    async revokeKey(id, name) {
      await postgres.transact(async (sql) => {
        const revision = await announce(sql, "keys");
        const revoked = await sql`UPDATE dragoman.keys SET revision = ${revision}, revoked_at_ms = ${nowMs(sql)}
          WHERE member = ${id} AND lower(name) = lower(${name}) AND revoked_at_ms IS NULL RETURNING name`;
        if (revoked.length === 0)
          throw new ProxyError("not_found", `There is no client key \`${name.slice(0, 63)}\`.`, {
            code: "key_not_found",
          });
      });
      await changes.catchUp("keys");
    },
    async remove(name) {
      const removed = await postgres.transact((sql) => removeMember(sql, name));
      for (const table of ["keys", "members", "accounts"] as const) await changes.catchUp(table);
      return removed;
    },
  };
}

const memberOf = ({ id, name, created_at_ms: createdAt }: MemberRow): Member => ({ id, name, createdAt });

const clientKeyOf = (key: KeyRow, member: Member, digest: Buffer): ClientKey => ({
  // The name of a key in the config has no slash.
  name: `${member.name}/${key.name}`,
  member: member.id,
  digest,
  models: key.models,
  modelAliases: {},
  expiresAt: key.expires_at_ms,
  limited: key.models !== null,
});

async function announce(sql: TransactionSQL, table: FollowedTable): Promise<number> {
  const [row] = await sql<{ revision: number }[]>`SELECT dragoman.announce_change(${table})::float8 AS revision`;
  return row!.revision;
}

/** By the clock of the database. */
const nowMs = (sql: TransactionSQL) => sql`(extract(epoch FROM now()) * 1000)::bigint`;

async function findByName(sql: TransactionSQL, name: string): Promise<Member | undefined> {
  const [row] = await sql<MemberRow[]>`SELECT id, name, created_at_ms::float8 AS created_at_ms FROM dragoman.members
    WHERE lower(name) = lower(${name}) AND removed_at_ms IS NULL`;
  return row && memberOf(row);
}

async function addMember(sql: TransactionSQL, name: string): Promise<Member> {
  const revision = await announce(sql, "members");
  // The table's revision is locked now; another server may have added the name before.
  const known = await findByName(sql, name);
  if (known) return known;
  const [row] = await sql<MemberRow[]>`INSERT INTO dragoman.members (name, role, created_at_ms, revision)
    VALUES (${name}, 'member', ${nowMs(sql)}, ${revision}) RETURNING id, name, created_at_ms::float8 AS created_at_ms`;
  return memberOf(row!);
}

/** @returns The name of the key: `key-2` for the second. */
async function addKey(sql: TransactionSQL, member: string, digest: Buffer): Promise<string> {
  const revision = await announce(sql, "keys");
  const [row] = await sql<{ name: string }[]>`INSERT INTO dragoman.keys (sha256, member, name, created_at_ms, revision)
    SELECT ${digest}, ${member}, 'key-' || count(*) + 1, ${nowMs(sql)}, ${revision}
      FROM dragoman.keys WHERE member = ${member}
    RETURNING name`;
  return row!.name;
}

/** All in one transaction: from then on no key of the member is accepted, and no token of theirs is kept. */
async function removeMember(sql: TransactionSQL, name: string): Promise<Member> {
  // Always in this order, so that two transactions do not wait for each other.
  const [accounts, keys, members] = [
    await announce(sql, "accounts"),
    await announce(sql, "keys"),
    await announce(sql, "members"),
  ];
  const member = await findByName(sql, name);
  if (!member)
    throw new ProxyError("not_found", `There is no member ${name.slice(0, 63)}; \`dragoman member ls\` shows them.`, {
      code: "member_not_found",
    });
  const { id } = member;
  await sql`UPDATE dragoman.members SET removed_at_ms = ${nowMs(sql)}, revision = ${members} WHERE id = ${id}`;
  await sql`UPDATE dragoman.keys SET revoked_at_ms = ${nowMs(sql)}, revision = ${keys}
    WHERE member = ${id} AND revoked_at_ms IS NULL`;
  const ofMember = sql`(SELECT key FROM dragoman.accounts WHERE member = ${id})`;
  await sql`DELETE FROM dragoman.sessions WHERE account IN ${ofMember}`;
  await sql`DELETE FROM dragoman.account_states WHERE account IN ${ofMember}`;
  await sql`UPDATE dragoman.accounts SET sealed_token = NULL, seal_key_id = NULL, revision = ${accounts},
    removed_at_ms = ${nowMs(sql)} WHERE member = ${id} AND removed_at_ms IS NULL`;
  await sql`DELETE FROM dragoman.invitations WHERE member = ${id}`;
  await sql`DELETE FROM dragoman.page_sessions WHERE member = ${id}`;
  return member;
}

/** The rule for names of keys, of which a member's name is a part. @throws ProxyError `invalid_request` */
function checkedName(name: string): string {
  const read = keyName.safeParse(name);
  if (read.success) return read.data;
  throw new ProxyError("invalid_request", `The member's name ${read.error.issues[0]?.message}.`, { param: "name" });
}

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
