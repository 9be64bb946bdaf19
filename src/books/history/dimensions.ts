/** What requests are grouped by: the values of a dimension, and the filters that find the requests of a group. */
import { clock, isoDay, utcOffset } from "../../lib/format";
import { type NameColumn, nameColumns } from "./entry";
import type { Filters } from "./filters";

/** Each time zone is a multiple of it away from UTC. */
const quarterMs = 15 * 60_000;

/** What requests can be grouped by. Hours and days are those of this machine's clock. */
export const dimensions = ["hour", "day", "status_class", ...nameColumns] as const;
export type Dimension = (typeof dimensions)[number];

/** Of more groups only the first are listed, and the others are added up. */
export const maxGroups = 5_000;

/** One value of one dimension. */
export interface GroupValue {
  dimension: Dimension;
  label: string | null;
  /** For times: the first and the last millisecond, Unix ms. */
  from?: number;
  to?: number;
}

export const isName = (dimension: Dimension): dimension is NameColumn => nameColumns.some((name) => name === dimension);

/** The hour or the day of this machine's clock. */
export const timeSpans = {
  day(date: Date) {
    const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
    return {
      label: isoDay(date.getTime()),
      from: new Date(year, month, day).getTime(),
      to: new Date(year, month, day + 1).getTime() - 1,
    };
  },
  /** An hour in which the clock is set is shorter, or occurs twice. @param date The start of a quarter of an hour. */
  hour(date: Date) {
    const at = (quarters: number) => new Date(date.getTime() + quarters * quarterMs);
    const isSame = (other: Date) =>
      other.getHours() === date.getHours() && other.getTimezoneOffset() === date.getTimezoneOffset();
    let [first, last] = [0, 0];
    while (isSame(at(first - 1))) first -= 1;
    while (isSame(at(last + 1))) last += 1;
    return { label: hourOf(date), from: at(first).getTime(), to: at(last + 1).getTime() - 1 };
  },
};

/** Includes the offset from UTC, because an hour occurs twice when summer time ends. */
function hourOf(date: Date): string {
  return `${isoDay(date.getTime())}T${clock(date.getTime()).slice(0, 2)}:00${utcOffset(date)}`;
}

export const groupKey = (values: GroupValue[]) =>
  Object.fromEntries(values.map(({ dimension, label }) => [dimension, label]));

/** The filters that find exactly the requests of a group. */
export function narrowTo(filters: Filters, values: GroupValue[]): Filters {
  const narrower: Filters = { ...filters };
  for (const { dimension, label, from = 0, to = 0 } of values)
    if (isName(dimension)) narrower[dimension] = label;
    else if (dimension === "status_class") narrower.status_class = Number.parseInt(label!, 10);
    else {
      narrower.from_ms = Math.max(from, narrower.from_ms ?? from);
      narrower.to_ms = Math.min(to, narrower.to_ms ?? to);
    }
  return narrower;
}
