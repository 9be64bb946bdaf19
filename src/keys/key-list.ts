/** The client keys as the admin API, the page and the command line show them: never the keys themselves. */
import { z } from "zod";
import { type ClientKey, isExpired } from "./client-keys";
import { shownLimitFields, shownLimits } from "./member-schemas";
import { type MemberLimits, maxMemberKeys } from "./members";

const keyItemSchema = z.object({
  name: z.string().nullable().describe("Null for a key that the config has without a name."),
  models: z
    .array(z.string())
    .nullable()
    .describe("The models that the key may use; null for all models, or for all those of its member."),
  expires_at_ms: z.number().nullable().describe("Null if the key does not expire."),
  expired: z.boolean(),
  last_used_at_ms: z.number().nullable().describe("The newest request on record; null if there is none."),
});
export type KeyItem = z.output<typeof keyItemSchema>;

/** What binds all keys of a member. */
const keyLimitsSchema = z.object({
  ...shownLimitFields,
  max_keys: z.number(),
});

export const keyListSchema = z.object({
  items: z.array(keyItemSchema),
  required: z.boolean().describe("Clients must send a key."),
  limits: keyLimitsSchema.nullable().describe("What the owner allows a member; null for the owner."),
});
export type KeyList = z.output<typeof keyListSchema>;

interface KeyListOptions {
  /** Wall clock, ms. */
  now: number;
  /** Clients must send a key. */
  required: boolean;
  /** Timestamp in milliseconds of the newest request with the key of this name; unknown where it is missing. */
  lastUsed?(name: string): number | null;
  /** Whose keys they are; missing for the owner. */
  member?: MemberLimits | undefined;
}

export function keyList(
  keys: readonly ClientKey[],
  { now, required, lastUsed = () => null, member }: KeyListOptions,
): KeyList {
  const items = keys.map((key) => ({
    name: key.name,
    models: key.models && [...key.models],
    expires_at_ms: key.expiresAt,
    expired: isExpired(key, now),
    last_used_at_ms: key.name === null ? null : lastUsed(key.name),
  }));
  const limits = member && { ...shownLimits(member), max_keys: maxMemberKeys };
  return { items, required, limits: limits ?? null };
}
