/**
 * What the owner sets of a member, a row each: the column in Postgres, the fields of the admin API, of the form and of the
 * command line follow from it. A member sees of these what `key-list.ts` names.
 */
import { z } from "zod";
import { keyModels, keyName } from "../../config/key-schema";
import { lazy } from "../../lib/lazy";
import { memberOptions } from "./member-options";

interface MemberField {
  /** What may be sent; null for none. Made when it is asked for, as a start needs no schema. */
  sent(): z.ZodType;
  shown(): z.ZodType;
  /** The type of the column in Postgres, with its constraints. It may be null. */
  column: string;
  /** Of the form's field, and what stands below it. */
  label: string;
  hint: string;
  inputmode?: "numeric";
  /** The option of the command line with its value. */
  option: { name: string; value: `<${string}>`; about: string };
  /** What the command line says if it is null. */
  none: string;
  /** Reads what a form or an option says, which is never empty: null has a word, such as `never`. The schema judges it. */
  read(text: string): unknown;
}

/** Ten years. */
const maxKeyDays = 3_650;

export const memberFields = {
  models: {
    // A pattern for all models is as good as none.
    sent: () =>
      keyModels
        .transform((models) => (models.includes("*") ? null : models))
        .nullable()
        .optional()
        .describe("The models that all keys of the member may use; `*` stands for any text. `null` for all models."),
    shown: () =>
      z.array(z.string()).nullable().describe("The models that all keys of the member may use; null for all models."),
    column: "text",
    label: "Models",
    hint: "Ids, separated by spaces; `*` stands for any text, as in `claude-*`. Empty for all models.",
    option: memberOptions.models,
    none: "all",
    read: (text) => text.split(/[\s,]+/).filter(Boolean),
  },
  key_days: {
    sent: () =>
      z
        .int("expected a whole number of days")
        .min(1, "expected at least 1 day")
        .max(maxKeyDays, `expected at most ${maxKeyDays} days`)
        .nullable()
        .optional()
        .describe("A key expires so many days after it was made, those that exist too. `null` for never."),
    shown: () => z.number().nullable().describe("A key expires so many days after it was made; null for never."),
    column: "int CHECK (key_days > 0)",
    label: "Days per key",
    hint: "A key expires so many days after it was made, such as 90. Empty for never.",
    inputmode: "numeric",
    option: memberOptions.key_days,
    none: "never",
    read: (text) => (text === "never" ? null : Number(text.replace(/(?<=\d)d$/, ""))),
  },
} as const satisfies Record<string, MemberField>;

type MemberFieldName = keyof typeof memberFields;
export const memberFieldNames = Object.keys(memberFields) as MemberFieldName[];

type Shapes<Kind extends "sent" | "shown"> = {
  [Name in MemberFieldName]: ReturnType<(typeof memberFields)[Name][Kind]>;
};
const shapes = <Kind extends "sent" | "shown">(kind: Kind) =>
  Object.fromEntries(memberFieldNames.map((name) => [name, memberFields[name][kind]()])) as Shapes<Kind>;

/** As they are shown to the owner. */
export const shownFields = lazy(() => shapes("shown"));

/** The values of a member's fields. They bind all keys of the member, those that exist too. */
export type MemberLimits = { readonly [Name in MemberFieldName]: z.output<Shapes<"shown">[Name]> };

/** A change of them: what is missing stays as it is. */
export const memberLimitsSchema = lazy(() => z.strictObject(shapes("sent")));
export type ChangedLimits = z.output<ReturnType<typeof memberLimitsSchema>>;

/** An invitation. */
export const newMemberSchema = lazy(() =>
  z.strictObject({ name: keyName.describe("The member's name; again for another link."), ...shapes("sent") }),
);

/** The fields among what else there is of a member. */
export const limitsIn = (member: MemberLimits): MemberLimits =>
  Object.fromEntries(memberFieldNames.map((name) => [name, member[name]])) as MemberLimits;
