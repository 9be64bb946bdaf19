/** The client keys as the admin API, the page and the command line show them: never the keys themselves. */
import { z } from "zod";
import type { ClientKey } from "./client-keys";

const keyItemSchema = z.object({
  name: z.string().nullable().describe("Null for a key that the config has without a name."),
  models: z.array(z.string()).nullable().describe("The models that the key may use; null for all models."),
  expires_at_ms: z.number().nullable().describe("Null if the key does not expire."),
  expired: z.boolean(),
  last_used_at_ms: z.number().nullable().describe("The newest request on record; null if there is none."),
});
export type KeyItem = z.output<typeof keyItemSchema>;

export const keyListSchema = z.object({
  items: z.array(keyItemSchema),
  required: z.boolean().describe("Clients must send a key."),
});
export type KeyList = z.output<typeof keyListSchema>;

/** @param lastUsed Timestamp in milliseconds of the newest request with the key of this name. */
export function keyList(
  keys: readonly ClientKey[],
  now: number,
  lastUsed: (name: string) => number | null = () => null,
): KeyList {
  const items = keys.map(({ name, models, expiresAt }) => ({
    name,
    models: models && [...models],
    expires_at_ms: expiresAt,
    expired: expiresAt !== null && expiresAt <= now,
    last_used_at_ms: name === null ? null : lastUsed(name),
  }));
  return { items, required: items.length > 0 };
}
