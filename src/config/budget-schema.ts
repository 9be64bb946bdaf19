/** Budgets in the config: how much a part of the requests may use in a period, and what happens then. */
import { z } from "zod";
import { lazy } from "../lib/lazy";

export const budgetUnits = ["credits", "premium", "requests"] as const;
/** Who may have an amount of their own in a budget. */
export const budgetHolders = ["member", "key", "account", "project"] as const;
export const budgetPeriods = ["day", "month"] as const;

const pattern = () => z.string().trim().min(1).max(256);

const name = () =>
  z
    .string()
    .trim()
    .regex(
      /^[\p{L}\p{N}][\p{L}\p{N} ._@+/-]{0,126}$/u,
      "must be at most 127 letters, digits, spaces and ._@+/-, and begin with a letter or digit",
    );

const limit = () => z.number().positive().max(1_000_000);

const rules = () => ({
  unit: z
    .enum(budgetUnits)
    .meta({ title: "Unit" })
    .describe("What is counted: AI credits, premium requests, or requests of any kind."),
  limit: limit().meta({ title: "Limit" }).describe("How much may be used in a period."),
  per: z.enum(budgetPeriods).meta({ title: "Period" }).describe("A day or month in UTC."),
  warn: z
    .array(z.number().gt(0).lt(1))
    .max(10)
    .default([0.5, 0.8])
    .meta({ title: "Warnings" })
    .describe("Shares of the limit at which a notice is sent."),
  then: z
    .enum(["stop", "warn", "fallback"])
    .default("stop")
    .meta({ title: "At the limit" })
    .describe(
      "`stop` refuses further requests, `warn` only sends a notice. `fallback` lets the next model of the model's `fallbacks` serve, and stops if there is none.",
    ),
  cut: z
    .boolean()
    .default(false)
    .meta({ title: "Cut running streams" })
    .describe("Also end streams that are running when the limit is reached."),
});

/** A budget of a client key; its scope is the key. */
export const keyBudgetSchema = lazy(() =>
  z.strictObject({
    name: name().optional().meta({ title: "Name" }).describe("The key's name and the period by default."),
    ...rules(),
  }),
);

/** The name of a key's budget. */
export const keyBudgetName = (
  key: string,
  { name, per }: Pick<Budget, "per"> & { name?: string | undefined },
): string => name ?? `${key}/${per}`;

export const budgetSchema = lazy(() =>
  z
    .strictObject({
      name: name().meta({ title: "Name" }).describe("The name in errors, notices and on the Budgets page."),
      scope: z
        .strictObject({
          member: pattern(),
          account: pattern(),
          key: pattern(),
          model: pattern(),
          project: pattern(),
        })
        .partial()
        .prefault({})
        .meta({ title: "Scope" })
        .describe(
          "The requests that count: each given pattern must match; `*` stands for any text. `member` is the name of a member of a team, and never matches the owner. All requests by default.",
        ),
      each: z
        .enum(budgetHolders)
        .optional()
        .meta({ title: "Each" })
        .describe(
          "Who has an amount of their own: each `member` of a team, each client `key`, each `account` or each `project`. By default, all requests that count share one amount; a member whom the scope names without `*` has one.",
        ),
      limits: z
        .record(pattern(), limit())
        .optional()
        .meta({ title: "Other limits" })
        .describe("With `each`, the limits of some, by name. The others have `limit`."),
      ...rules(),
      since: z.iso
        .datetime()
        .optional()
        .meta({ title: "Counted since" })
        .describe("When counting began; set when the budget is added. In that period the forecast begins there."),
    })
    .refine(({ each, limits }) => each !== undefined || limits === undefined, {
      path: ["limits"],
      message: "needs `each`, which says whose limits these are",
    })
    .refine(({ limits = {} }) => Object.keys(limits).length <= 1_000, {
      path: ["limits"],
      message: "expected at most 1000 limits",
    }),
);
export type Budget = z.output<ReturnType<typeof budgetSchema>>;
