/** Creates and revokes client keys in the config. The config keeps the hash of a key that is created here, never the key. */
import { z } from "zod";
import { keyExpiry, keyModels, keyName } from "../../config/key-schema";
import { repeatChange } from "../../config/repeat-change";
import type { ConfigStore } from "../../config/store";
import { isObject } from "../../lib/json";
import { sha256 } from "../../lib/net/in/credentials";
import { keyExists, keyNotFound, newClientKey } from "./client-keys";

/** What a new key is created from. */
export const newKeySchema = z.strictObject({
  name: keyName.describe("The name of the key, in the history, in statistics and in budgets."),
  models: keyModels.optional().describe("The models that the key may use; all models by default."),
  expires_at: keyExpiry
    .refine((at) => Date.parse(at) > Date.now(), "must not be in the past: the key would be refused at once")
    .optional()
    .describe("When the key expires; never by default."),
});
export type NewKey = z.output<typeof newKeySchema>;

/**
 * Adds a key to the config.
 * @returns The key. It cannot be shown again.
 * @throws ProxyError `conflict` if a key has this name already.
 */
export async function createKey(config: ConfigStore, { name, models, expires_at }: NewKey) {
  const key = newClientKey();
  await changeKeys(config, (keys) => {
    if (keys.some((each) => isNamed(each, name))) throw keyExists(name);
    return [
      ...keys,
      { name, sha256: sha256(key).toHex(), ...(models && { models }), ...(expires_at && { expiresAt: expires_at }) },
    ];
  });
  return key;
}

/** Removes a key from the config: its next request is refused. @throws ProxyError `not_found`. */
export async function revokeKey(config: ConfigStore, name: string): Promise<void> {
  await changeKeys(config, (keys) => {
    const others = keys.filter((each) => !isNamed(each, name));
    if (others.length === keys.length) throw keyNotFound(name);
    return others;
  });
}

/** Changes the list of keys as it is stored now. */
const changeKeys = (config: ConfigStore, change: (keys: readonly unknown[]) => unknown[]) =>
  repeatChange(config, ({ stored }) => {
    const auth = isObject(stored.auth) ? stored.auth : {};
    return { auth: { ...auth, apiKeys: change(Array.isArray(auth.apiKeys) ? auth.apiKeys : []) } };
  });

/** Names differ in more than case, because tables and file systems may ignore it. */
const isNamed = (stored: unknown, name: string) =>
  isObject(stored) && typeof stored.name === "string" && stored.name.trim().toLowerCase() === name.trim().toLowerCase();
