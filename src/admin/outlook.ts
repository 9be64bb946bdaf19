/** How long an account lasts at the pace it was used so far. */
import type { AccountItem } from "./accounts";
import { dayMs } from "./days";

export type Outlook =
  | { kind: "unlimited" | "used-up" }
  | { kind: "unknown"; why: string }
  | { kind: "lasts"; left: number }
  | { kind: "ends"; at: number; before: number };

/** What was used since the last reset, carried on to the next. Quotas run from month to month. */
export function outlookOf({ runtime, reset_at_ms: reset }: AccountItem, now: number): Outlook {
  const { entitlement, remaining, unlimited } = runtime;
  if (unlimited) return { kind: "unlimited" };
  if (remaining !== null && remaining <= 0) return { kind: "used-up" };
  if (entitlement === null || remaining === null || reset === null || reset <= now)
    return { kind: "unknown", why: "unknown" };
  const last = new Date(reset);
  last.setMonth(last.getMonth() - 1);
  const elapsed = now - last.getTime();
  if (elapsed < dayMs) return { kind: "unknown", why: "too early to tell" };
  const used = entitlement - remaining;
  const perMs = used / elapsed;
  const ahead = reset - now;
  const ends = now + remaining / perMs;
  return perMs > 0 && ends < reset
    ? { kind: "ends", at: ends, before: reset - ends }
    : { kind: "lasts", left: Math.max(0, remaining - perMs * ahead) };
}
