/** How long an account lasts at the pace it was used so far. */
import { isCounted } from "../../accounts/quota";
import type { AccountItem } from "../api/accounts";
import { dayMs } from "../ui/days";

export type Forecast =
  | { kind: "unlimited" | "used-up" }
  | { kind: "unknown"; why: string }
  | { kind: "lasts"; left: number }
  | { kind: "ends"; at: number; before: number };

/** What was used since the last reset, carried on to the next. Quotas run from month to month, by UTC. */
export function forecastOf({ runtime, unit, reset_at_ms: reset }: AccountItem, now: number): Forecast {
  const { entitlement, remaining, unlimited } = runtime;
  if (unlimited) return { kind: "unlimited" };
  if (!isCounted({ ...runtime, unit })) return { kind: "unknown", why: "unknown" };
  if (remaining !== null && remaining <= 0) return { kind: "used-up" };
  if (entitlement === null || remaining === null || reset === null || reset <= now)
    return { kind: "unknown", why: "unknown" };
  const elapsed = now - monthBefore(reset);
  if (elapsed < dayMs) return { kind: "unknown", why: "too early to tell" };
  const used = entitlement - remaining;
  const perMs = used / elapsed;
  const ahead = reset - now;
  const ends = now + remaining / perMs;
  return perMs > 0 && ends < reset
    ? { kind: "ends", at: ends, before: reset - ends }
    : { kind: "lasts", left: Math.max(0, remaining - perMs * ahead) };
}

/** The same day and time of the month before, by UTC as GitHub's resets are; the last day of a month that is shorter. */
function monthBefore(time: number): number {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() - 1];
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(date.getUTCDate(), lastDay)) + (time - Math.floor(time / dayMs) * dayMs);
}
