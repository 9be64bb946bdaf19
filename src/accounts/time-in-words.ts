/**
 * A time for people, in the time zone of this machine: `14:05 CET` today, with seconds within the next hour; otherwise
 * `1 June, 00:00 CET`.
 */
export function zonedTime(time: number, now: number): string {
  const date = new Date(time);
  const two = (part: number) => String(part).padStart(2, "0");
  const seconds = time - now < 3600_000 ? `:${two(date.getSeconds())}` : "";
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}${seconds} ${zoneOf(date)}`;
  if (date.toDateString() === new Date(now).toDateString()) return clock;
  return `${date.getDate()} ${months[date.getMonth()]}, ${clock}`;
}

const months = "January February March April May June July August September October November December".split(" ");

/** `CET`, or `GMT+8` for a zone without a common name. */
function zoneOf(date: Date): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(date);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}
