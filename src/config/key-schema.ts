/** The client keys of the config. */
import { z } from "zod";
import { lazy } from "../lib/lazy";
import { keyBudgetSchema } from "./budget-schema";
import { key, modelId } from "./provider-schema";

/** The name of a client key. It is shown in tables and in URLs. */
export const keyName = z
  .string()
  // A name that only a space tells from another could be named by no budget.
  .trim()
  .regex(
    /^[\p{L}\p{N}][\p{L}\p{N} ._@+-]{0,62}$/u,
    "must be at most 63 letters, digits, spaces and ._@+-, and begin with a letter or digit",
  );

/** A date (until its beginning in UTC) or a time with its zone. */
export const keyExpiry = z.union(
  [z.iso.date(), z.iso.datetime({ offset: true })],
  "must be a date or a time with its zone, such as 2027-01-31 or 2027-01-31T18:00:00Z",
);

/** Ids of models, or patterns of them. */
export const keyModels = z.array(modelId).min(1, "expected at least one model").max(1_000);

/** `host/login`, as the admin API has it in `account_key`. */
const accountKey = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9.-]{1,253}\/[a-z0-9_-]{1,39}$/, "must be an account with its host, such as github.com/octocat");
export const accountKeys = z.array(accountKey).max(1_000);

/** At least one: nothing could be served without. */
const boundAccounts = accountKeys.min(1, "expected at least one account");

export const projectAccounts = lazy(() =>
  z
    .record(z.string().regex(/^[A-Za-z0-9][\w .@+-]{0,63}$/, "must be the name of a project"), boundAccounts)
    .refine((all) => Object.keys(all).length <= 200, "expected at most 200 projects")
    .meta({ title: "Accounts of projects", section: "accounts" })
    .describe(
      'For a project, the accounts that its requests use, and no others: `{ "web-shop": ["github.com/octocat"] }`. Clients name a project by the path `/p/<project>` or a header. A member\'s requests use the member\'s own accounts.',
    ),
);

const namedKey = lazy(() =>
  z
    .strictObject({
      name: keyName.meta({ title: "Name" }).describe("The name in the history, in statistics and in budgets."),
      key: key
        .optional()
        .meta({ title: "Key" })
        .describe("The key. Use either this or its hash.")
        .meta({ secret: true }),
      sha256: z
        .string()
        .toLowerCase()
        .regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits")
        .optional()
        .meta({ title: "Hash" })
        .describe("The SHA-256 hash of the key.")
        .meta({ secret: true }),
      models: keyModels
        .optional()
        .meta({ title: "Models" })
        .describe("The models that the key may use; `*` stands for any text. All models by default."),
      accounts: boundAccounts
        .optional()
        .meta({ title: "Accounts" })
        .describe("The accounts that requests with the key use, and no others, each with its host. All by default."),
      expiresAt: keyExpiry.optional().meta({ title: "Expires" }).describe("When the key expires. Never by default."),
      budgets: z
        .array(keyBudgetSchema())
        .max(20)
        .optional()
        .meta({ title: "Budgets" })
        .describe("Budgets of this key alone."),
    })
    .refine(({ key, sha256 }) => (key === undefined) !== (sha256 === undefined), "expected either key or sha256"),
);

export const clientKeys = lazy(() =>
  z
    .array(z.union([key, namedKey()]))
    .max(1_000)
    .refine((all) => {
      const names = all.flatMap((each) => (typeof each === "string" ? [] : each.name.toLowerCase()));
      return new Set(names).size === names.length;
    }, "two keys have the same name"),
);
