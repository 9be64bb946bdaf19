/** The budgets as the admin API, the page and the command line show them. */

import { z } from "zod";
import type { Budget } from "../../config/budget-schema";
import { budgetHolders, budgetPeriods, budgetUnits } from "../../config/budget-schema";
import { hourMs } from "../../lib/format";
import { lazy } from "../../lib/lazy";
import type { BudgetState } from "./entries";

const forecast = () =>
  z.number().nullable().describe("When the limit is reached at the present rate, if before the reset.");
const unknownCount = () => z.number().describe("Requests of unknown price. They count as 0.");

const holderItemSchema = lazy(() =>
  z.object({
    name: z.string().nullable().describe("Of the member, key, account or project. Null for a removed member."),
    member: z.string().nullable().describe("The member's id; null for what is the owner's."),
    limit: z.number().describe("In `unit`."),
    used: z.number().describe("In `unit`, by requests that have ended."),
    reserved: z.number().describe("In `unit`, the estimate for running requests."),
    unknown_price_count: unknownCount(),
    forecast_ends_at_ms: forecast(),
  }),
);
export type HolderItem = z.output<ReturnType<typeof holderItemSchema>>;

const budgetItemSchema = lazy(() =>
  z.object({
    name: z.string(),
    scope: z.object({
      member: z.string().optional(),
      account: z.string().optional(),
      key: z.string().optional(),
      model: z.string().optional(),
      project: z.string().optional(),
    }),
    each: z.enum(budgetHolders).optional().describe("Who has an amount of their own."),
    limits: z.record(z.string(), z.number()).optional().describe("The limits of some of them, by name."),
    unit: z.enum(budgetUnits),
    limit: z.number().describe("In `unit`."),
    per: z.enum(budgetPeriods),
    warn: z.array(z.number()),
    then: z.enum(["stop", "warn", "fallback"]),
    exhausted: z
      .boolean()
      .describe("Used up, or reserved to the limit; where each has an amount, by one of those listed."),
    used: z
      .number()
      .nullable()
      .describe(
        "In `unit`, by requests that have ended. Null where each has an amount, and for a member where others share it.",
      ),
    reserved: z.number().nullable().describe("In `unit`, the estimate for running requests; null as `used`."),
    unknown_price_count: unknownCount().nullable(),
    started_at_ms: z.number().describe("When the period began."),
    counted_from_ms: z
      .number()
      .describe("Since when `used` is counted: since the period began, or since the budget was added in it."),
    resets_at_ms: z.number().describe("When the period ends."),
    forecast_ends_at_ms: forecast(),
    holders: z
      .object({
        count: z.number().describe("All that have used something in this period."),
        items: z.array(holderItemSchema()),
        next_offset: z.number().nullable().describe("`offset` of the next page; null on the last one."),
      })
      .nullable()
      .describe("Those that have an amount of their own, the largest share of a limit first; null if all share one."),
  }),
);
export type BudgetItem = z.output<ReturnType<typeof budgetItemSchema>>;

export const budgetListSchema = lazy(() => z.object({ items: z.array(budgetItemSchema()) }));

/** Of a budget that all share, or of the one holder that somebody may see. */
export function budgetItem(state: BudgetState, now: number): BudgetItem {
  const { used, reserved, unknown } = state;
  return {
    ...bareItem(state),
    exhausted: isExhausted(state),
    used,
    reserved,
    unknown_price_count: unknown,
    forecast_ends_at_ms: forecastOf(state, now),
    holders: null,
  };
}

/** @param state Of any holder. */
export function holdersItem(
  state: BudgetState,
  { count, states, offset = 0 }: { count: number; states: readonly BudgetState[]; offset?: number },
  now: number,
): BudgetItem {
  const end = offset + states.length;
  return {
    ...withoutAmounts(state, states.some(isExhausted)),
    holders: {
      count,
      items: states.map((each) => holderItem(each, now)),
      next_offset: states.length > 0 && end < count ? end : null,
    },
  };
}

/** What a member sees of a budget that others use too. */
export const withoutAmounts = (state: BudgetState, exhausted: boolean): BudgetItem => ({
  ...bareItem(state),
  exhausted,
  used: null,
  reserved: null,
  unknown_price_count: null,
  forecast_ends_at_ms: null,
  holders: null,
});

/** Without the limits of others, and without amounts. */
function bareItem({ budget, startedAt, resetsAt }: BudgetState) {
  const { name, scope, each, unit, limit, per, warn, then } = budget;
  return {
    name,
    scope,
    ...(each && { each }),
    unit,
    limit,
    per,
    warn: [...warn],
    then,
    started_at_ms: startedAt,
    counted_from_ms: countedFrom(budget, startedAt),
    resets_at_ms: resetsAt,
  };
}

function holderItem(state: BudgetState, now: number): HolderItem {
  const { budget, used, reserved, unknown } = state;
  const holder = state.holder!;
  return {
    name: holder.name,
    member: holder.member || null,
    limit: budget.limit,
    used,
    reserved,
    unknown_price_count: unknown,
    forecast_ends_at_ms: forecastOf(state, now),
  };
}

/** What a person calls an amount's holder. */
export const holderName = ({ name }: HolderItem): string => name ?? "a removed member";

export const isExhausted = ({ budget, used, reserved }: BudgetState): boolean => used + reserved >= budget.limit;

/** Milliseconds of a period after which its rate says something. */
const minElapsed = hourMs;

const countedFrom = ({ since }: Pick<Budget, "since">, startedAt: number): number =>
  since === undefined ? startedAt : Math.max(startedAt, Date.parse(since));

/** Extrapolates what was used since counting began. */
function forecastOf({ budget, used, startedAt, resetsAt }: BudgetState, now: number): number | null {
  const { limit } = budget;
  const from = countedFrom(budget, startedAt);
  if (used >= limit || now - from < minElapsed) return null;
  const endsAt = now + ((limit - used) * (now - from)) / used;
  return endsAt < resetsAt ? Math.round(endsAt) : null;
}
