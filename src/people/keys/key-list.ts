/** The client keys as the admin API, the page and the command line show them: never the keys themselves. */
import { z } from "zod";
import type { Environment } from "../../config/environment";
import type { ConfigStore } from "../../config/store";
import { type ClientKey, isExpired, type OpenTo } from "./client-keys";
import { type MemberLimits, shownFields } from "./member-fields";
import { type Members, maxMemberKeys } from "./members";

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
  models: shownFields().models,
  key_days: shownFields().key_days,
  max_keys: z.number(),
});

export const keyListSchema = z.object({
  items: z.array(keyItemSchema),
  required: z.boolean().describe("Clients must send a key."),
  served_without: z
    .enum(["anyone", "others", "nobody"])
    .describe(
      "Who is served when these keys are gone: anyone without a key, others with keys that are not in this list, or nobody.",
    ),
  from_environment: z.boolean().describe("The only key is DRAGOMAN_API_KEY, which the first created key replaces."),
  limits: keyLimitsSchema.nullable().describe("What the owner allows a member; null for the owner."),
});
export type KeyList = z.output<typeof keyListSchema>;

export const createdKeySchema = z.object({
  name: z.string(),
  key: z.string().describe("The key. It is not stored and cannot be shown again."),
});

interface KeyHolders {
  config: Pick<ConfigStore, "current">;
  environment: Pick<Environment, "clientKey">;
  members: Pick<Members, "needKeys"> | undefined;
  /** As in `Server`. */
  openTo: OpenTo;
}

/** Who is served when the keys are gone that are in the config now. */
export function servedWithoutKeys({ config, environment, members, openTo }: KeyHolders): KeyList["served_without"] {
  const isOther = environment.clientKey !== undefined && config.current.auth.apiKeys.length > 0;
  if (isOther || members?.needKeys) return "others";
  return openTo === "nobody" ? "nobody" : "anyone";
}

/** What the removal of the last of these keys means, for whoever is asked; undefined if others are served as before. */
export const meaningOfLastKey = (served: KeyList["served_without"]): string | undefined => lastKey[served];

const lastKey = {
  others: undefined,
  anyone:
    "This removes the last client key. Without a key, any program on this machine can use dragoman, and other machines are refused.",
  nobody:
    "This removes the last client key. Other machines can reach this server, so it refuses everybody until another key is created.",
};

interface KeyListOptions {
  /** Wall clock, ms. */
  now: number;
  /** Clients must send a key. */
  required: boolean;
  servedWithout: KeyList["served_without"];
  /** The only key is that of the environment. */
  fromEnvironment?: boolean;
  /** Timestamp in milliseconds of the newest request with the key of this name; unknown where it is missing. */
  lastUsed?(name: string): number | null;
  /** Whose keys they are; missing for the owner. */
  member?: Pick<MemberLimits, "models" | "key_days"> | undefined;
}

export function keyList(
  keys: readonly ClientKey[],
  { now, required, servedWithout, fromEnvironment = false, lastUsed = () => null, member }: KeyListOptions,
): KeyList {
  const items = keys.map((key) => ({
    name: key.name,
    models: key.models && [...key.models],
    expires_at_ms: key.expiresAt,
    expired: isExpired(key, now),
    last_used_at_ms: key.name === null ? null : lastUsed(key.name),
  }));
  const limits = member && { models: member.models, key_days: member.key_days, max_keys: maxMemberKeys };
  return {
    items,
    required,
    served_without: servedWithout,
    from_environment: fromEnvironment,
    limits: limits ?? null,
  };
}
