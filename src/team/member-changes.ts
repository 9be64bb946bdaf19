/**
 * Changes members, their keys and invitations in Postgres, each in one transaction. Revisions are announced before other rows
 * are locked, and always in the order accounts, keys, members, sign-ins, so that two transactions do not wait for each other.
 */
import type { SQL, TransactionSQL } from "bun";
import { ProxyError } from "../lib/errors";
import { dayMs, utcDay } from "../lib/format";
import { keyExists, keyGone, matchesPattern } from "../people/keys/client-keys";
import { loginTimes } from "../people/keys/logins";
import { type ChangedLimits, limitsIn, type MemberLimits, memberFieldNames } from "../people/keys/member-fields";
import {
  type Invitation,
  type InvitationState,
  invitedKeyName,
  type Member,
  maxDailyKeys,
  maxMemberKeys,
  memberNotFound,
  type WantedKey,
} from "../people/keys/members";
import { signOutAccounts } from "./accounts";
import { announceChange } from "./changes";

export interface MemberRow extends MemberLimits {
  id: string;
  name: string;
  created_at_ms: number;
}

export const memberOf = (row: MemberRow): Member => ({
  ...{ id: row.id, name: row.name, createdAt: row.created_at_ms },
  ...limitsIn(row),
});

const limitColumns = memberFieldNames.join(", ");

/** The columns of `dragoman.members` that make a `MemberRow`. */
export const memberColumns = ["id", "name", "created_at_ms::float8 AS created_at_ms", ...memberFieldNames]
  .map((column) => `members.${column}`)
  .join(", ");

/** Milliseconds for which an invitation can be used. */
const invitationMs = 7 * dayMs;

/** Adds an invitation, and the member if there is none of this name. */
export async function addInvitation(
  sql: TransactionSQL,
  { name, limits, digest }: { name: string; limits: ChangedLimits; digest: Buffer },
): Promise<Omit<Invitation, "code">> {
  const known = await findByName(sql, name);
  let member = known ?? (await addMember(sql, name));
  if (Object.keys(limits).length > 0) member = await changeLimits(sql, member.name, limits);
  await withdrawOpen(sql, member.id);
  const [row] = await sql<{ until: number }[]>`INSERT INTO dragoman.invitations (sha256, member, expires_at)
    VALUES (${digest}, ${member.id}, now() + make_interval(secs => ${invitationMs / 1_000}))
    RETURNING floor(extract(epoch FROM expires_at) * 1000)::float8 AS until`;
  return { member, isKnown: known !== undefined, expiresAt: row!.until };
}

/** @returns How many were open. */
export async function withdrawOpen(sql: TransactionSQL, member: string): Promise<number> {
  const withdrawn = await sql`UPDATE dragoman.invitations SET withdrawn_at = now(), expires_at = now()
    WHERE member = ${member} AND used_at IS NULL AND expires_at > now() RETURNING 1`;
  if (withdrawn.length > 0) await cancelSignIns(sql, member);
  return withdrawn.length;
}

/**
 * Whoever began one with a link or key that is not good any more would add an account of their own to the member's. To be announced
 * last of all tables.
 */
export async function cancelSignIns(sql: TransactionSQL, member: string): Promise<void> {
  const waiting = sql`member = ${member} AND state->>'name' = 'waiting'`;
  if ((await sql`SELECT 1 FROM dragoman.sign_ins WHERE ${waiting}`).length === 0) return;
  const revision = await announceChange(sql, "sign_ins");
  await sql`UPDATE dragoman.sign_ins SET state = '{"name":"cancelled"}', revision = ${revision} WHERE ${waiting}`;
}

export async function findInvitation(sql: SQL, digest: Buffer): Promise<InvitationState | undefined> {
  const [row] = await sql<
    (MemberRow & { state: InvitationState["name"]; at: number })[]
  >`SELECT ${sql.unsafe(memberColumns)}, floor(extract(epoch FROM coalesce(used_at, withdrawn_at, expires_at)) * 1000)::float8 AS at,
      CASE WHEN used_at IS NOT NULL THEN 'used' WHEN withdrawn_at IS NOT NULL THEN 'withdrawn'
        WHEN expires_at <= now() THEN 'expired' ELSE 'open' END AS state
    FROM dragoman.invitations JOIN dragoman.members ON id = member
    WHERE sha256 = ${digest} AND removed_at_ms IS NULL`;
  return row && { member: memberOf(row), name: row.state, at: row.at };
}

/** If two accept at once, the second waits for the first and then finds the invitation used. */
export async function acceptInvitation(
  sql: TransactionSQL,
  digest: Buffer,
  keyDigest: Buffer,
): Promise<{ member: Member; name: string } | undefined> {
  const revision = await announceChange(sql, "keys");
  const [row] = await sql<MemberRow[]>`UPDATE dragoman.invitations SET used_at = now() FROM dragoman.members
    WHERE sha256 = ${digest} AND used_at IS NULL AND expires_at > now() AND id = member AND removed_at_ms IS NULL
    RETURNING ${sql.unsafe(memberColumns)}`;
  if (!row) return undefined;
  const { ever } = await requireRoom(sql, row.id, revision);
  const name = `key-${ever + 1}`;
  await sql`INSERT INTO dragoman.keys (sha256, member, name, created_at_ms, revision)
    VALUES (${keyDigest}, ${row.id}, ${name}, ${nowMs(sql)}, ${revision})`;
  await cancelSignIns(sql, row.id);
  return { member: memberOf(row), name };
}

/** @throws ProxyError `not_found` */
export async function changeLimits(sql: TransactionSQL, name: string, limits: ChangedLimits): Promise<Member> {
  const revision = await announceChange(sql, "members");
  const member = await requireMember(sql, name);
  const columns = sql.unsafe(limitColumns);
  const [row] = await sql<MemberRow[]>`UPDATE dragoman.members SET revision = ${revision}, (${columns}) =
      (SELECT ${columns} FROM jsonb_populate_record(members, ${JSON.stringify(limits)}::text::jsonb))
    WHERE id = ${member.id} RETURNING ${sql.unsafe(memberColumns)}`;
  return memberOf(row!);
}

/** @throws ProxyError `authentication`, `conflict`, `invalid_request` */
export async function addKey(
  sql: TransactionSQL,
  id: string,
  { by, digest, ...wanted }: WantedKey & { digest: Buffer },
): Promise<void> {
  // Other changes of keys wait from here on, so that what is counted does not change.
  const revision = await announceChange(sql, "keys");
  const [row] = await sql<(MemberRow & AskingKey)[]>`SELECT ${sql.unsafe(memberColumns)}, ${nowMs(sql)}::float8 AS now,
      keys.models AS own_models, keys.expires_at_ms::float8 AS own_expiry
    FROM dragoman.members JOIN dragoman.keys ON keys.member = members.id
    WHERE members.id = ${id} AND removed_at_ms IS NULL AND sha256 = ${Buffer.from(by)} AND revoked_at_ms IS NULL`;
  if (!row) throw keyGone();
  requireWithin(memberOf(row), row, wanted);
  await requireRoom(sql, id, revision);
  const { name, expiresAt } = wanted;
  const models = wanted.models ?? row.own_models;
  const added =
    await sql`INSERT INTO dragoman.keys (sha256, member, name, models, created_at_ms, expires_at_ms, revision)
    VALUES (${digest}, ${id}, ${name}, ${models && JSON.stringify(models)}::text::jsonb, ${row.now},
      ${expiresAt ?? row.own_expiry}, ${revision})
    ON CONFLICT DO NOTHING RETURNING name`;
  if (added.length === 0) throw keyExists(name);
}

/** The limits of the key that a member asks with for another one; null for those of the member. */
interface AskingKey {
  now: number;
  own_models: string[] | null;
  own_expiry: number | null;
}

/** @throws ProxyError `invalid_request` if the limits of the member, or of the key that asks, do not allow the key. */
function requireWithin(
  member: Member,
  { now, own_models, own_expiry }: AskingKey,
  { name, models, expiresAt }: Omit<WantedKey, "by">,
): void {
  const refuse = (param: string, message: string): never => {
    throw new ProxyError("invalid_request", message, { param });
  };
  if (invitedKeyName.test(name))
    refuse("name", `Names such as \`${name}\` are given to keys of invitations. Choose another name.`);
  for (const [whose, allowed] of [
    ["Your models", member.models],
    ["The models of the key that you signed in with", own_models],
  ] as const) {
    // A `*` of the key's pattern is matched by a `*` of the other's only.
    const outside = models?.find((each) => allowed?.every((pattern) => !matchesPattern(pattern, each)));
    if (outside !== undefined) refuse("models", `You may not use \`${outside}\`. ${whose} are ${allowed!.join(", ")}.`);
  }
  if (expiresAt === null) return;
  if (expiresAt <= now) refuse("expires_at", "The key would have expired already.");
  const latest = now + (member.key_days ?? Number.POSITIVE_INFINITY) * dayMs;
  if (expiresAt > latest)
    refuse("expires_at", `Your keys last ${member.key_days} days at most, so this one until ${utcDay(latest)}.`);
  if (own_expiry !== null && expiresAt > own_expiry)
    refuse(
      "expires_at",
      `The key that you signed in with expires on ${utcDay(own_expiry)}, and so does this one at the latest.`,
    );
}

/** Whether a sign-in of a tool is over by itself: nobody has renewed it for long, or its key has expired. */
export const loginIsOver = (sql: SQL) => sql`(renewed_at < now() - make_interval(days => ${loginTimes.unusedDays}) OR
  coalesce(expires_at_ms <= ${nowMs(sql)}, false) OR
  coalesce(keys.created_at_ms + key_days * 86400000::bigint <= ${nowMs(sql)}, false))`;

/**
 * Sign-ins of tools that are over make room.
 * @returns How many keys the member has ever had.
 * @throws ProxyError `conflict`
 */
async function requireRoom(sql: TransactionSQL, member: string, revision: number): Promise<{ ever: number }> {
  await sql`UPDATE dragoman.keys SET revoked_at_ms = ${nowMs(sql)}, revision = ${revision}
    FROM dragoman.logins, dragoman.members
    WHERE logins.key = keys.sha256 AND members.id = keys.member AND keys.member = ${member}
      AND revoked_at_ms IS NULL AND ${loginIsOver(sql)}`;
  const [row] = await sql<{ ever: number; present: number; today: number }[]>`SELECT count(*)::int AS ever,
      (count(*) FILTER (WHERE revoked_at_ms IS NULL))::int AS present,
      (count(*) FILTER (WHERE created_at_ms > ${nowMs(sql)} - ${dayMs}))::int AS today
    FROM dragoman.keys WHERE member = ${member}`;
  const { ever, present, today } = row!;
  if (present >= maxMemberKeys)
    throw new ProxyError(
      "conflict",
      `There are ${maxMemberKeys} keys already, which is the most that a member may have. Revoke one that is not used any more on the page Keys, or let the owner do it. Expired ones count too, but for those of tools that signed in.`,
      { code: "too_many_keys" },
    );
  if (today >= maxDailyKeys)
    throw new ProxyError(
      "conflict",
      `${maxDailyKeys} keys were made within a day, which is the most. Try again tomorrow.`,
      {
        code: "too_many_keys",
      },
    );
  return { ever };
}

/** @param which A condition on the rows of `dragoman.keys`. @returns How many were revoked. */
export async function revokeKeys(sql: TransactionSQL, which: SQL.Query<unknown>, announced?: number): Promise<number> {
  const revision = announced ?? (await announceChange(sql, "keys"));
  const revoked = await sql`UPDATE dragoman.keys SET revoked_at_ms = ${nowMs(sql)}, revision = ${revision}
    WHERE ${which} AND revoked_at_ms IS NULL RETURNING 1`;
  return revoked.length;
}

/** All in one transaction: from then on no key of the member is accepted, and no token of theirs is kept. */
export async function removeMember(sql: TransactionSQL, name: string): Promise<Member> {
  const [accounts, keys, members] = [
    await announceChange(sql, "accounts"),
    await announceChange(sql, "keys"),
    await announceChange(sql, "members"),
  ];
  const member = await requireMember(sql, name);
  const { id } = member;
  await sql`UPDATE dragoman.members SET removed_at_ms = ${nowMs(sql)}, revision = ${members} WHERE id = ${id}`;
  await revokeKeys(sql, sql`member = ${id}`, keys);
  await signOutAccounts(sql, sql`member = ${id} AND removed_at_ms IS NULL`, accounts);
  await sql`DELETE FROM dragoman.invitations WHERE member = ${id}`;
  await cancelSignIns(sql, id);
  return member;
}

/** The present by the clock of the database, Unix ms. */
const nowMs = (sql: SQL) => sql`(extract(epoch FROM now()) * 1000)::bigint`;

/** @throws ProxyError `not_found` */
export async function requireMember(sql: SQL, name: string): Promise<Member> {
  const member = await findByName(sql, name);
  if (member) return member;
  throw memberNotFound(name);
}

async function findByName(sql: SQL, name: string): Promise<Member | undefined> {
  const [row] = await sql<MemberRow[]>`SELECT ${sql.unsafe(memberColumns)} FROM dragoman.members
    WHERE lower(name) = lower(${name}) AND removed_at_ms IS NULL`;
  return row && memberOf(row);
}

async function addMember(sql: TransactionSQL, name: string): Promise<Member> {
  const revision = await announceChange(sql, "members");
  // The table's revision is locked now; another server may have added the name before.
  const known = await findByName(sql, name);
  if (known) return known;
  const [row] = await sql<MemberRow[]>`INSERT INTO dragoman.members (name, created_at_ms, revision)
    VALUES (${name}, ${nowMs(sql)}, ${revision}) RETURNING ${sql.unsafe(memberColumns)}`;
  return memberOf(row!);
}
