/**
 * Changes members, their keys and invitations, each in one transaction. The row of the member is locked first, so that what is
 * counted does not change, and two transactions never wait for each other.
 */
import { ProxyError } from "../../lib/errors";
import { dayMs, utcDay } from "../../lib/format";
import { asNumber, type Statement, sql, type Tables, words } from "../../lib/sql";
import { keyExists, keyGone, matchesPattern } from "./client-keys";
import { loginTimes } from "./logins";
import { type ChangedLimits, limitsIn, type MemberLimits, memberFieldNames } from "./member-fields";
import {
  type Invitation,
  type InvitationState,
  invitedKeyName,
  type Member,
  maxDailyKeys,
  maxMemberKeys,
  memberNotFound,
  type WantedKey,
} from "./members";

/** A member as it is stored: `models` is JSON. */
export interface MemberRow extends Omit<MemberLimits, "models"> {
  id: string;
  name: string;
  models: string | null;
  created_at_ms: number;
}

const asStored = (value: unknown) => (Array.isArray(value) ? JSON.stringify(value) : value);
export const readModels = (stored: string | null): string[] | null => (stored === null ? null : JSON.parse(stored));

export const memberOf = (row: MemberRow): Member => ({
  id: row.id,
  name: row.name,
  createdAt: row.created_at_ms,
  ...limitsIn({ ...row, models: readModels(row.models) }),
});

/** The columns of `dragoman.members` that make a `MemberRow`. */
export const memberColumns = sql`members.id, members.name, ${asNumber("members.created_at_ms")} AS created_at_ms,
  ${words(memberFieldNames.map((name) => `members.${name}`).join(", "))}`;

/** Names are compared so: they differ in more than case. */
export const folded = (name: string): string => name.toLowerCase();

/** Milliseconds for which an invitation can be used. */
const invitationMs = 7 * dayMs;

/** Adds an invitation, and the member if there is none of this name. */
export async function addInvitation(
  tables: Tables,
  { name, limits, digest }: { name: string; limits: ChangedLimits; digest: string },
): Promise<Omit<Invitation, "code"> & { hadOpen: boolean }> {
  const known = await findByName(tables, name);
  let member = known ?? (await addMember(tables, name));
  if (Object.keys(limits).length > 0) member = await changeLimits(tables, member.name, limits);
  const hadOpen = (await withdrawOpen(tables, member.id)) > 0;
  const [row] = await tables.ask<{ until: number }>(sql`INSERT INTO dragoman.invitations (sha256, member, expires_at_ms)
    VALUES (${digest}, ${member.id}, ${tables.now} + ${invitationMs}) RETURNING ${asNumber("expires_at_ms")} AS until`);
  return { member, isKnown: known !== undefined, expiresAt: row!.until, hadOpen };
}

/** @returns How many were open. */
export async function withdrawOpen(tables: Tables, member: string): Promise<number> {
  const { now } = tables;
  const withdrawn =
    await tables.ask(sql`UPDATE dragoman.invitations SET withdrawn_at_ms = ${now}, expires_at_ms = ${now}
    WHERE member = ${member} AND used_at_ms IS NULL AND expires_at_ms > ${now} RETURNING 1 AS one`);
  return withdrawn.length;
}

export async function findInvitation(tables: Tables, digest: string): Promise<InvitationState | undefined> {
  const [row] = await tables.ask<
    MemberRow & { state: InvitationState["name"]; at: number }
  >(sql`SELECT ${memberColumns}, ${asNumber("coalesce(used_at_ms, withdrawn_at_ms, expires_at_ms)")} AS at,
      CASE WHEN used_at_ms IS NOT NULL THEN 'used' WHEN withdrawn_at_ms IS NOT NULL THEN 'withdrawn'
        WHEN expires_at_ms <= ${tables.now} THEN 'expired' ELSE 'open' END AS state
    FROM dragoman.invitations JOIN dragoman.members ON id = member
    WHERE sha256 = ${digest} AND removed_at_ms IS NULL`);
  return row && { member: memberOf(row), name: row.state, at: row.at };
}

/** If two accept at once, the second waits for the first and then finds the invitation used. */
export async function acceptInvitation(
  tables: Tables,
  digest: string,
  keyDigest: string,
): Promise<{ member: Member; name: string } | undefined> {
  const { now } = tables;
  const [invited] = await tables.ask<{ member: string }>(
    sql`SELECT member FROM dragoman.invitations WHERE sha256 = ${digest}`,
  );
  const member = invited && (await lockMember(tables, sql`id = ${invited.member}`));
  if (!member) return undefined;
  const used = await tables.ask(sql`UPDATE dragoman.invitations SET used_at_ms = ${now}
    WHERE sha256 = ${digest} AND used_at_ms IS NULL AND expires_at_ms > ${now} RETURNING 1 AS one`);
  if (used.length === 0) return undefined;
  const { ever } = await requireRoom(tables, member.id);
  const name = `key-${ever + 1}`;
  await tables.ask(sql`INSERT INTO dragoman.keys (sha256, member, name, folded, created_at_ms)
    VALUES (${keyDigest}, ${member.id}, ${name}, ${folded(name)}, ${now})`);
  return { member, name };
}

/** @throws ProxyError `not_found` */
export async function changeLimits(tables: Tables, name: string, limits: ChangedLimits): Promise<Member> {
  const member = await requireMember(tables, name);
  const changed = { ...member, ...limits };
  const set = memberFieldNames.map((field) => sql`${words(field)} = ${asStored(changed[field])}`);
  await tables.ask(sql`UPDATE dragoman.members SET ${set.reduce((one, other) => sql`${one}, ${other}`)}
    WHERE id = ${member.id}`);
  return changed;
}

/** @throws ProxyError `authentication`, `conflict`, `invalid_request` */
export async function addKey(
  tables: Tables,
  id: string,
  { by, digest, ...wanted }: WantedKey & { digest: string },
): Promise<void> {
  const member = await lockMember(tables, sql`id = ${id}`);
  const [asking] = await tables.ask<{ now: number; models: string | null; expiry: number | null }>(
    sql`SELECT models, ${asNumber("expires_at_ms")} AS expiry, CAST(${tables.now} AS double precision) AS now
      FROM dragoman.keys WHERE member = ${id} AND sha256 = ${Buffer.from(by).toString("hex")} AND revoked_at_ms IS NULL`,
  );
  if (!member || !asking) throw keyGone();
  const own = { ...asking, models: readModels(asking.models) };
  requireWithin(member, own, wanted);
  await requireRoom(tables, id);
  const { name, expiresAt } = wanted;
  const models = wanted.models ?? own.models;
  const added = await tables.ask(sql`INSERT INTO dragoman.keys
      (sha256, member, name, folded, models, created_at_ms, expires_at_ms)
    VALUES (${digest}, ${id}, ${name}, ${folded(name)}, ${models && JSON.stringify(models)}, ${tables.now},
      ${expiresAt ?? own.expiry})
    ON CONFLICT DO NOTHING RETURNING name`);
  if (added.length === 0) throw keyExists(name);
}

/** The limits of the key that a member asks with for another one; null for those of the member. */
interface AskingKey {
  now: number;
  models: string[] | null;
  expiry: number | null;
}

/** @throws ProxyError `invalid_request` if the limits of the member, or of the key that asks, do not allow the key. */
function requireWithin(member: Member, asking: AskingKey, { name, models, expiresAt }: Omit<WantedKey, "by">): void {
  const refuse = (param: string, message: string): never => {
    throw new ProxyError("invalid_request", message, { param });
  };
  if (invitedKeyName.test(name))
    refuse("name", `Names such as \`${name}\` are given to keys of invitations. Choose another name.`);
  for (const [whose, allowed] of [
    ["Your models", member.models],
    ["The models of the key that you signed in with", asking.models],
  ] as const) {
    // A `*` of the key's pattern is matched by a `*` of the other's only.
    const outside = models?.find((each) => allowed?.every((pattern) => !matchesPattern(pattern, each)));
    if (outside !== undefined) refuse("models", `You may not use \`${outside}\`. ${whose} are ${allowed!.join(", ")}.`);
  }
  if (expiresAt === null) return;
  const latest = asking.now + (member.key_days ?? Number.POSITIVE_INFINITY) * dayMs;
  if (expiresAt > latest)
    refuse("expires_at", `Your keys last ${member.key_days} days at most, so this one until ${utcDay(latest)}.`);
  if (asking.expiry !== null && expiresAt > asking.expiry)
    refuse(
      "expires_at",
      `The key that you signed in with expires on ${utcDay(asking.expiry)}, and so does this one at the latest.`,
    );
}

/** Whether a sign-in of a tool is over by itself: nobody has renewed it for long, or its key has expired. */
export const loginIsOver = ({ now }: Tables): Statement =>
  sql`(renewed_at_ms < ${now} - ${loginTimes.unusedDays * dayMs} OR coalesce(keys.expires_at_ms <= ${now}, 1 = 0)
    OR coalesce(keys.created_at_ms + CAST(key_days AS bigint) * ${dayMs} <= ${now}, 1 = 0))`;

/**
 * Sign-ins of tools that are over make room.
 * @returns How many keys the member has ever had.
 * @throws ProxyError `conflict`
 */
async function requireRoom(tables: Tables, member: string): Promise<{ ever: number }> {
  const { now } = tables;
  await tables.ask(sql`UPDATE dragoman.keys SET revoked_at_ms = ${now} WHERE sha256 IN (SELECT keys.sha256
    FROM dragoman.logins JOIN dragoman.keys ON keys.sha256 = logins.key JOIN dragoman.members ON members.id = keys.member
    WHERE keys.member = ${member} AND revoked_at_ms IS NULL AND ${loginIsOver(tables)})`);
  const [row] = await tables.ask<{ ever: number; present: number; today: number }>(sql`SELECT
      ${asNumber("count(*)")} AS ever, ${asNumber("count(*) FILTER (WHERE revoked_at_ms IS NULL)")} AS present,
      CAST(count(*) FILTER (WHERE created_at_ms > ${now} - ${dayMs}) AS double precision) AS today
    FROM dragoman.keys WHERE member = ${member}`);
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
export async function revokeKeys(tables: Tables, which: Statement): Promise<number> {
  const revoked = await tables.ask(sql`UPDATE dragoman.keys SET revoked_at_ms = ${tables.now}
    WHERE ${which} AND revoked_at_ms IS NULL RETURNING 1 AS one`);
  return revoked.length;
}

/** From the end of the transaction on no key of the member is accepted. @throws ProxyError `not_found` */
export async function removeMember(tables: Tables, name: string): Promise<Member> {
  const member = await requireMember(tables, name);
  await tables.ask(sql`UPDATE dragoman.members SET removed_at_ms = ${tables.now} WHERE id = ${member.id}`);
  await revokeKeys(tables, sql`member = ${member.id}`);
  await tables.ask(sql`DELETE FROM dragoman.invitations WHERE member = ${member.id}`);
  return member;
}

/** @throws ProxyError `not_found` */
export async function requireMember(tables: Tables, name: string): Promise<Member> {
  const member = await findByName(tables, name);
  if (member) return member;
  throw memberNotFound(name);
}

/** The member, whose row nobody else changes before the transaction has ended. @param which A condition on `dragoman.members`. */
async function lockMember(tables: Tables, which: Statement): Promise<Member | undefined> {
  const [row] = await tables.ask<MemberRow>(sql`SELECT ${memberColumns} FROM dragoman.members
    WHERE ${which} AND removed_at_ms IS NULL ${tables.forUpdate}`);
  return row && memberOf(row);
}

const findByName = (tables: Tables, name: string): Promise<Member | undefined> =>
  lockMember(tables, sql`folded = ${folded(name)}`);

async function addMember(tables: Tables, name: string): Promise<Member> {
  // Another server may add the name at the same time.
  await tables.ask(sql`INSERT INTO dragoman.members (id, name, folded, created_at_ms)
    VALUES (${crypto.randomUUID()}, ${name}, ${folded(name)}, ${tables.now}) ON CONFLICT DO NOTHING`);
  return requireMember(tables, name);
}
