/** Days and hours in this machine's time zone, in milliseconds. */

/** @param back Number of days before this one. */
export function startOfDay(now: number, back = 0): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - back).getTime();
}

/** The start of the current hour. */
export const startOfHour = (now: number) => new Date(now).setMinutes(0, 0, 0);
