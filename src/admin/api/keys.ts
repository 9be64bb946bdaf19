/** Creates and revokes client keys. A key itself is shown once, when it is created. */
import type { z } from "zod";
import type { Filters } from "../../books/history/history";
import type { App, Scope } from "../../parts/app";
import { type ClientKey, clientKeysOf, isMadeUp, keyGone } from "../../people/keys/client-keys";
import { type createdKeySchema, type KeyList, keyList, servedWithoutKeys } from "../../people/keys/key-list";
import type { Membership } from "../../people/keys/membership";
import { createKey, type NewKey, revokeKey } from "../../people/keys/stored-keys";

async function listOwnersKeys(app: App): Promise<KeyList> {
  const { clientKeys, requiresKey: required, config, demo, history, now } = app;
  const stored = config.current.auth.apiKeys;
  const fromEnvironment = stored.length === 0 && clientKeys.length > 0;
  const madeUp = clientKeysOf(
    stored.filter((each) => isMadeUp(each, demo)),
    undefined,
  );
  const keys = [...clientKeys, ...madeUp];
  const servedWithout = servedWithoutKeys(app);
  const lastUsed = await lastUses(history);
  return keyList(keys, { now: now(), required, servedWithout, fromEnvironment, lastUsed });
}

/** A member's own keys, by the names that they have in the history. */
async function listMemberKeys({ history, now }: Scope, membership: Membership): Promise<KeyList> {
  const own = membership.clientKeys();
  const lastUsed = await lastUses(history);
  return keyList(own, { now: now(), required: true, servedWithout: "others", lastUsed, member: membership.self });
}

export const listKeys = (app: Scope): Promise<KeyList> =>
  app.membership ? listMemberKeys(app, app.membership) : listOwnersKeys(app.owner!);

/** When each key was used last, by its name. @param filters Whose keys they are, if not everybody's of this history. */
export async function lastUses(
  history: Scope["history"],
  filters: Filters = {},
): Promise<(name: string) => number | null> {
  const { groups } = await history.statistics(filters, ["key_name"]);
  const byName = new Map(groups.map(({ key, last_at_ms }) => [key.key_name, last_at_ms]));
  return (name) => byName.get(name) ?? null;
}

/**
 * Creates a key of the person.
 * @param by The key that a member asks with; undefined if it was revoked meanwhile.
 * @throws ProxyError `authentication`, `invalid_request`, `conflict`.
 */
export async function createClientKey(
  { owner, membership, logger }: Scope,
  wanted: NewKey,
  by: ClientKey | undefined,
): Promise<z.output<typeof createdKeySchema>> {
  const created = owner
    ? { name: wanted.name, key: await createKey(owner.config, wanted) }
    : await createMemberKey(membership!, wanted, by);
  logger.info(`The client key ${created.name} was created.`);
  return created;
}

function createMemberKey(membership: Membership, { name, models, expires_at }: NewKey, by: ClientKey | undefined) {
  if (!by) throw keyGone();
  const expiresAt = expires_at === undefined ? null : Date.parse(expires_at);
  return membership.createKey({ name, models: models ?? null, expiresAt, by: by.digest });
}

/**
 * Revokes a key of the person; for the owner one of the config, or one of a member: `anna/laptop`.
 * @throws ProxyError `not_found`
 */
export async function revokeClientKey({ owner, membership, logger }: Scope, name: string): Promise<{ revoked: true }> {
  const whose = membership ?? (owner && membershipIn(owner, name));
  const revoked = whose ? await whose.revokeKey(name) : name;
  if (!whose) await revokeKey(owner!.config, name);
  logger.info(`The client key ${revoked} was revoked.`);
  return { revoked: true };
}

/** The member of a key's whole name. */
function membershipIn(owner: App, name: string): Membership | undefined {
  const member = name.includes("/") ? owner.members?.named(name.slice(0, name.indexOf("/"))) : undefined;
  return member && owner.forMember(member.id).membership;
}
