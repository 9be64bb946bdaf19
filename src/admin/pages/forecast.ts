/** When an account is exhausted, at the rate it was used so far. */

import { dayMs } from "../../lib/format";
import { isCounted } from "../../people/accounts/quota";
import type { AccountItem } from "../api/accounts";

type Forecast =
  | { kind: "unlimited" | "exhausted" }
  | { kind: "unknown"; why: string }
  | { kind: "lasts"; left: number }
  | { kind: "ends"; at: number; before: number };

/** Extrapolates the usage since the last reset to the next one. Quotas reset monthly, in UTC. */
export function forecastOf({ runtime, unit, reset_at_ms: reset }: AccountItem, now: number): Forecast {
  const { entitlement, remaining, unlimited } = runtime;
  if (unlimited) return { kind: "unlimited" };
  if (!isCounted({ ...runtime, unit })) return { kind: "unknown", why: "unknown" };
  if (remaining !== null && remaining <= 0) return { kind: "exhausted" };
  if (entitlement === null || remaining === null || reset === null || reset <= now)
    return { kind: "unknown", why: "unknown" };
  const elapsed = now - monthBefore(reset);
  if (elapsed < dayMs) return { kind: "unknown", why: "too early to estimate" };
  const used = entitlement - remaining;
  const perMs = used / elapsed;
  const ahead = reset - now;
  const ends = now + remaining / perMs;
  return perMs > 0 && ends < reset
    ? { kind: "ends", at: ends, before: reset - ends }
    : { kind: "lasts", left: Math.max(0, remaining - perMs * ahead) };
}

/** The same day and time of the month before in UTC, or the last day of that month if it is shorter. */
function monthBefore(time: number): number {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() - 1];
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(date.getUTCDate(), lastDay)) + (time - Math.floor(time / dayMs) * dayMs);
}
