/** Answers that the commands read too: this file loads nothing of the server. An unknown value is null, never 0. */
import { z } from "zod";
import { lazy } from "../lib/lazy";
import { accountStates } from "../people/accounts/account-state";

const maybe = () => z.number().nullable();
const text = () => z.string().nullable();
const moment = () => text().describe("ISO 8601, UTC.");

export const usageSchema = lazy(() =>
  z
    .object({
      id: z.string(),
      entitlement: maybe().describe("In `unit`."),
      remaining: maybe().describe("In `unit`. May be negative: GitHub goes on counting below zero."),
      unlimited: z.boolean(),
      failed: z.boolean().describe("A person must act; `state` and `reason` say more."),
      state: z.enum(accountStates),
      until: moment(),
      reason: text(),
      limited_models: z
        .array(z.object({ model: z.string(), until: moment(), reason: z.string() }))
        .default([])
        .describe("Models that cool down by themselves; the account serves the others."),
      plan: text(),
      unit: z
        .enum(["premium", "credits", "chat", "unknown"])
        .describe("Premium requests, AI credits (`credits`), chat messages (`chat`), or not reported (`unknown`)."),
      reset_at: moment(),
      overage: z.boolean().describe("More than the entitlement may be used, and is paid for."),
      overage_count: z.number().nullable(),
      stale: z.boolean().describe("GitHub could not be reached: these are the last known numbers, from `updated_at`."),
      updated_at: moment(),
      quota_error: text().describe("Why GitHub could not be reached."),
    })
    .meta({ id: "AccountUsage" }),
);

export const usageListSchema = lazy(() => z.object({ accounts: z.array(usageSchema()) }));

export const healthSchema = lazy(() =>
  z.object({
    status: z.literal("ok"),
    version: z.string(),
    demo: z.boolean(),
    accounts: z.array(z.string()).describe("The state of each account of the owner."),
    team_accounts: z
      .record(z.enum(accountStates), z.number())
      .optional()
      .describe("Of a team: how many accounts, those of all members too, are in each state."),
    history: z.enum(["ok", "degraded"]),
  }),
);

export const readySchema = lazy(() =>
  z.object({
    status: z
      .enum(["ready", "draining", "database", "config"])
      .describe(
        "`draining`: a signal to stop has come. `database`: it has been away for too long. `config`: the config is not valid, so an older one is used.",
      ),
    version: z.string(),
    degraded: z
      .array(z.enum(["accounts", "history", "database"]))
      .describe(
        "What does not work: no account of anybody can serve now, the history cannot be written, or a team's database is away.",
      ),
  }),
);
