/** Days and hours in this machine's time zone, in milliseconds. */
import { hourMs } from "../../lib/format";

/** @param back Number of days before this one. */
export function startOfDay(now: number, back = 0): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - back).getTime();
}

/** The current hour and the 23 before it, as filters. */
export const lastHours = (now: number) => ({ from_ms: new Date(now).setMinutes(0, 0, 0) - 23 * hourMs });
