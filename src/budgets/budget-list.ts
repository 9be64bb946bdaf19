/** The budgets as the admin API, the page and the command line show them. */

import { z } from "zod";
import { budgetPeriods, budgetUnits } from "../config/budget-schema";
import { hourMs } from "../format";
import { lazy } from "../lazy";
import type { BudgetState } from "./ledger";

const budgetItemSchema = lazy(() =>
  z.object({
    name: z.string(),
    scope: z.object({
      account: z.string().optional(),
      key: z.string().optional(),
      model: z.string().optional(),
      client: z.string().optional(),
    }),
    unit: z.enum(budgetUnits),
    limit: z.number().describe("In `unit`."),
    per: z.enum(budgetPeriods),
    warn: z.array(z.number()),
    then: z.enum(["stop", "warn", "fallback"]),
    used: z.number().nullable().describe("In `unit`, by requests that have ended; null for a budget per session."),
    reserved: z.number().nullable().describe("In `unit`, the estimate for running requests."),
    unknown_price_count: z.number().nullable().describe("Requests of unknown price. They count as 0."),
    started_at_ms: z.number().nullable().describe("When the period began; null for a session."),
    resets_at_ms: z.number().nullable().describe("When the period ends; null for a session."),
    forecast_ends_at_ms: z
      .number()
      .nullable()
      .describe("When the limit is reached at the present rate, if before the reset."),
  }),
);
export type BudgetItem = z.output<ReturnType<typeof budgetItemSchema>>;

export const budgetListSchema = lazy(() => z.object({ items: z.array(budgetItemSchema()) }));

/** A budget per session has an amount for each session only, so none is shown. */
export function budgetItem(
  { budget, used, reserved, unknown, startedAt, resetsAt }: BudgetState,
  now: number,
): BudgetItem {
  const { cut: _, ...rules } = budget;
  const isSession = budget.per === "session";
  return {
    ...rules,
    warn: [...rules.warn],
    used: isSession ? null : used,
    reserved: isSession ? null : reserved,
    unknown_price_count: isSession ? null : unknown,
    started_at_ms: startedAt,
    resets_at_ms: resetsAt,
    forecast_ends_at_ms: isSession ? null : forecastOf({ used, limit: budget.limit, startedAt, resetsAt }, now),
  };
}

/** Milliseconds of a period after which its rate says something. */
const minElapsed = hourMs;

/** Extrapolates what was used since the period began. */
function forecastOf(
  {
    used,
    limit,
    startedAt,
    resetsAt,
  }: { used: number; limit: number; startedAt: number | null; resetsAt: number | null },
  now: number,
): number | null {
  if (startedAt === null || resetsAt === null || used <= 0 || used >= limit || now - startedAt < minElapsed)
    return null;
  const endsAt = now + ((limit - used) * (now - startedAt)) / used;
  return endsAt < resetsAt ? Math.round(endsAt) : null;
}
