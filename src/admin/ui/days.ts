/** Days and hours in this machine's time zone, in milliseconds. */
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** @param back Number of days before this one. */
export function startOfDay(now: number, back = 0): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - back).getTime();
}

/** The start of the current hour. */
export const startOfHour = (now: number) => new Date(now).setMinutes(0, 0, 0);
