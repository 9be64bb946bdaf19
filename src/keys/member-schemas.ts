/** Members and their limits as the admin API, the pages and the command line read them. */
import { z } from "zod";
import { keyModels, keyName } from "../config/key-schema";
import { lazy } from "../lazy";
import type { MemberLimits } from "./members";

/** Ten years. */
const maxKeyDays = 3_650;

const limits = {
  models: keyModels
    .nullable()
    .optional()
    .describe("The models that all keys of the member may use; `*` stands for any text. `null` for all models."),
  key_days: z
    .int("expected a whole number of days")
    .min(1, "expected at least 1 day")
    .max(maxKeyDays, `expected at most ${maxKeyDays} days`)
    .nullable()
    .optional()
    .describe("A key expires so many days after it was made, those that exist too. `null` for never."),
};

/** The limits of a member, as they are shown. */
export const shownLimitFields = {
  models: z
    .array(z.string())
    .nullable()
    .describe("The models that all keys of the member may use; null for all models."),
  key_days: z.number().nullable().describe("A key expires so many days after it was made; null for never."),
};

export const shownLimits = ({ models, keyDays }: MemberLimits) => ({
  models: models && [...models],
  key_days: keyDays,
});

/** A change of limits: what is missing stays as it is. */
export const memberLimitsSchema = lazy(() => z.strictObject(limits));
type SentLimits = z.output<ReturnType<typeof memberLimitsSchema>>;

/** An invitation. */
export const newMemberSchema = lazy(() =>
  z.strictObject({ name: keyName.describe("The member's name; again for another link."), ...limits }),
);

/** @param sent A pattern for all models is as good as none. */
export function limitsOf({ models, key_days }: SentLimits): Partial<MemberLimits> {
  return {
    ...(models !== undefined && { models: models?.includes("*") ? null : models }),
    ...(key_days !== undefined && { keyDays: key_days }),
  };
}
