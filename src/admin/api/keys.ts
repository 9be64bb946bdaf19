/** Creates and revokes client keys. A key itself is shown once, when it is created. */
import { z } from "zod";
import type { App } from "../../app";
import { ProxyError } from "../../errors";
import { type KeyList, keyList } from "../../keys/key-list";
import { createKey, type NewKey, revokeKey } from "../../keys/stored-keys";
import { refuseOpening } from "./config";

export const createdKeySchema = z.object({
  name: z.string(),
  key: z.string().describe("The key. It is not stored and cannot be shown again."),
});

export async function listKeys({ clientKeys, history, now }: App): Promise<KeyList> {
  const lastUsed = new Map<string, number | null>();
  for (const { name } of clientKeys)
    if (name !== null) lastUsed.set(name, (await history.lastOf({ key_name: name })) ?? null);
  return keyList(clientKeys, now(), (name) => lastUsed.get(name) ?? null);
}

/** A member's own keys, by the names that they have in the history. */
export async function listMemberKeys({ members, history, now }: App, member: string): Promise<KeyList> {
  const own = members!.clientKeysOf(member);
  const lastUsed = new Map<string, number | null>();
  for (const { name } of own) lastUsed.set(name!, (await history.lastOf({ key_name: name! })) ?? null);
  return keyList(own, now(), (name) => lastUsed.get(name) ?? null);
}

/** @param name As `listMemberKeys` has it: `anna/key-1`. @throws ProxyError `not_found`. */
export async function revokeMemberKey({ members, logger }: App, member: string, name: string) {
  const own = members!.clientKeysOf(member).find((key) => key.name!.toLowerCase() === name.toLowerCase());
  if (!own)
    throw new ProxyError("not_found", `You have no client key \`${name.slice(0, 127)}\`.`, { code: "key_not_found" });
  await members!.revokeKey(member, own.name!.slice(own.name!.indexOf("/") + 1));
  logger.info(`The client key ${name} was revoked.`);
  return { revoked: true as const };
}

/** @throws ProxyError `invalid_request`, `conflict`. */
export async function createClientKey(app: App, wanted: NewKey): Promise<z.output<typeof createdKeySchema>> {
  const key = await createKey(app.config, wanted);
  app.logger.conceal(key);
  app.logger.info(`The client key ${wanted.name} was created.`);
  return { name: wanted.name, key };
}

/**
 * @param exposed Other machines can reach this server.
 * @throws ProxyError `not_found`; `invalid_request` for the last key of a server that other machines can reach.
 */
export async function revokeClientKey(app: App, name: string, exposed: boolean): Promise<{ revoked: true }> {
  await revokeKey(app.config, name, (next, patch) => refuseOpening(app, next, patch, exposed));
  app.logger.info(`The client key ${name} was revoked.`);
  return { revoked: true };
}
