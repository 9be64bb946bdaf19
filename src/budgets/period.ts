/** The periods of budgets. All of them begin and end in UTC, as GitHub's own quotas do. */

import type { Budget } from "../config/budget-schema";
import { dayMs } from "../format";

/** 1 January 1970 was a Thursday; a week begins on Monday. */
const firstMonday = 4 * dayMs;

interface PeriodSpan {
  /** Timestamp in milliseconds. */
  start: number;
  /** Timestamp in milliseconds; null for a session, which has no end of its own. */
  end: number | null;
}

/** The day, week or month (UTC) that a time is in. */
export function spanOf(period: Budget["per"], at: number): PeriodSpan {
  if (period === "session") return { start: 0, end: null };
  if (period === "month") {
    const date = new Date(at);
    const first = (month: number) => Date.UTC(date.getUTCFullYear(), month, 1);
    return { start: first(date.getUTCMonth()), end: first(date.getUTCMonth() + 1) };
  }
  const [length, offset] = period === "day" ? [dayMs, 0] : [7 * dayMs, firstMonday];
  const start = Math.floor((at - offset) / length) * length + offset;
  return { start, end: start + length };
}
