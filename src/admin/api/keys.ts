/** Creates and revokes client keys. A key itself is shown once, when it is created. */
import { z } from "zod";
import type { App } from "../../app";
import { type ClientKey, keyGone, keyNotFound } from "../../keys/client-keys";
import { type KeyList, keyList, servedWithoutKeys } from "../../keys/key-list";
import { createKey, type NewKey, revokeKey } from "../../keys/stored-keys";

export const createdKeySchema = z.object({
  name: z.string(),
  key: z.string().describe("The key. It is not stored and cannot be shown again."),
});

export async function listKeys(app: App): Promise<KeyList> {
  const { clientKeys, requiresKey: required, config, history, now } = app;
  const fromEnvironment = config.current.auth.apiKeys.length === 0 && clientKeys.length > 0;
  const servedWithout = servedWithoutKeys(app);
  const lastUsed = await lastUses(history, clientKeys);
  return keyList(clientKeys, { now: now(), required, servedWithout, fromEnvironment, lastUsed });
}

/** A member's own keys, by the names that they have in the history. */
export async function listMemberKeys({ members, history, now }: App, member: string): Promise<KeyList> {
  const own = members!.clientKeysOf(member);
  const lastUsed = await lastUses(history, own);
  return keyList(own, { now: now(), required: true, servedWithout: "others", lastUsed, member: members!.find(member) });
}

/** When each key was used last, by its name. */
export async function lastUses(
  history: App["history"],
  keys: readonly ClientKey[],
): Promise<(name: string) => number | null> {
  const names = keys.map(({ name }) => name).filter((name) => name !== null);
  const last = await Promise.all(
    names.map(async (name) => [name, (await history.lastOf({ key_name: name })) ?? null] as const),
  );
  const byName = new Map(last);
  return (name) => byName.get(name) ?? null;
}

/**
 * Creates a key of a member.
 * @param by The key that the member asks with; undefined if it was revoked meanwhile.
 * @throws ProxyError `authentication`, `invalid_request`, `conflict`.
 */
export async function createMemberKey(
  { members, logger }: App,
  member: string,
  { name, models, expires_at }: NewKey,
  by: ClientKey | undefined,
): Promise<z.output<typeof createdKeySchema>> {
  const expiresAt = expires_at === undefined ? null : Date.parse(expires_at);
  if (!by) throw keyGone();
  const key = await members!.createKey(member, { name, models: models ?? null, expiresAt, by: by.digest });
  logger.conceal(key);
  const created = `${members!.find(member)!.name}/${name}`;
  logger.info(`The client key ${created} was created.`);
  return { name: created, key };
}

/** @param name As `listMemberKeys` has it, `anna/laptop`, or without the member's name. @throws ProxyError `not_found`. */
export async function revokeMemberKey({ members, logger }: App, member: string, name: string) {
  const wanted = name.slice(name.indexOf("/") + 1);
  const own = members!.clientKeysOf(member).find((key) => {
    const full = key.name!.toLowerCase();
    return full === name.toLowerCase() || full === `${members!.find(member)!.name}/${name}`.toLowerCase();
  });
  if (!own) throw keyNotFound(name);
  await members!.revokeKey(member, wanted);
  logger.info(`The client key ${own.name} was revoked.`);
  return { revoked: true as const };
}

/** @throws ProxyError `invalid_request`, `conflict`. */
export async function createClientKey(app: App, wanted: NewKey): Promise<z.output<typeof createdKeySchema>> {
  const key = await createKey(app.config, wanted);
  app.logger.conceal(key);
  app.logger.info(`The client key ${wanted.name} was created.`);
  return { name: wanted.name, key };
}

/** Revokes a key of the config, or one of a member: `anna/laptop`. @throws ProxyError `not_found` */
export async function revokeClientKey(app: App, name: string): Promise<{ revoked: true }> {
  const member = name.includes("/") ? app.members?.named(name.slice(0, name.indexOf("/"))) : undefined;
  if (member) return revokeMemberKey(app, member.id, name);
  await revokeKey(app.config, name);
  app.logger.info(`The client key ${name} was revoked.`);
  return { revoked: true };
}
