/** Days and hours of this machine's clock, in milliseconds. */
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** @param back So many days before this one. */
export function startOfDay(now: number, back = 0): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - back).getTime();
}

/** The hour that has begun. */
export const startOfHour = (now: number) => new Date(now).setMinutes(0, 0, 0);

/** `2026-11-21`, as the history names a day. */
export function isoDay(at: number): string {
  const date = new Date(at);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
