/** The periods of budgets. All of them begin and end in UTC, as GitHub's own quotas do. */

import type { Budget } from "../../config/budget-schema";
import { dayMs } from "../../lib/format";

/** Timestamps in milliseconds. */
interface PeriodSpan {
  start: number;
  end: number;
}

/** The day or month (UTC) that a time is in. */
export function spanOf(period: Budget["per"], at: number): PeriodSpan {
  if (period === "month") {
    const date = new Date(at);
    const first = (month: number) => Date.UTC(date.getUTCFullYear(), month, 1);
    return { start: first(date.getUTCMonth()), end: first(date.getUTCMonth() + 1) };
  }
  const start = Math.floor(at / dayMs) * dayMs;
  return { start, end: start + dayMs };
}
