/** What the requests page shows, read from its URL. */

import { labelOf, nameColumns } from "../../../books/history/entry";
import type { Filters } from "../../../books/history/history";
import { dayMs, hourMs, moment } from "../../../lib/format";
import { entryOf } from "../../../lib/json";
import { withQuery } from "../../ui/links";
import type { MemberNames } from "../member-names";

export interface RequestsView {
  filters: Filters;
  limit: number;
  follows: boolean;
  /** Whether this is a later page of the list, not the newest rows. */
  paged: boolean;
  now: number;
  url: URL;
  /** For an owner with members. */
  names: MemberNames | undefined;
}

/** Periods to choose instead of a start and an end. */
export const periods: Record<string, [ms: number, name: string]> = {
  "15m": [15 * 60_000, "Last 15 minutes"],
  "1h": [hourMs, "Last hour"],
  "24h": [dayMs, "Last 24 hours"],
  "7d": [7 * dayMs, "Last 7 days"],
  "30d": [30 * dayMs, "Last 30 days"],
};

/** The URL with `period`, `from` and `to` of the form turned into the API's `from_ms` and `to_ms`. */
export function withTimes(url: URL, now: number): URL {
  const converted = new URL(url);
  const query = converted.searchParams;
  const [ms] = entryOf(periods, query.get("period") ?? "") ?? [];
  if (ms !== undefined && !query.get("from_ms")) query.set("from_ms", String(now - ms));
  for (const [name, target, seconds] of [
    ["from", "from_ms", 0],
    ["to", "to_ms", 59_999],
  ] as const) {
    const time = localTime(query.get(name));
    if (time !== undefined && !query.get(target)) query.set(target, String(time + seconds));
  }
  return converted;
}

/** `2026-11-21T14:05`, in this machine's time zone. */
function localTime(text: string | null): number | undefined {
  if (text === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return undefined;
  const time = new Date(text).getTime();
  return Number.isNaN(time) ? undefined : time;
}

/** Each active filter, and the URL without it. */
export function chipsOf({
  filters,
  url,
  now,
  names,
}: Pick<RequestsView, "filters" | "url" | "now" | "names">): { name: string; value: string; without: string }[] {
  const chips: { name: string; value: string; without: string }[] = [];
  const add = (name: string, value: string, ...params: string[]) => {
    const query = new URLSearchParams(url.searchParams);
    for (const param of [...params, "cursor_id"]) query.delete(param);
    for (const [param, given] of [...query]) if (given === "") query.delete(param);
    chips.push({ name, value, without: withQuery(url.pathname, Object.fromEntries(query)) });
  };
  const period = periods[url.searchParams.get("period") ?? ""];
  if (period) add("When", period[1], "period");
  for (const name of nameColumns) {
    const value = filters[name];
    if (value !== undefined) add(labelOf(name), (name === "member" && names?.nameOf(value)) || (value ?? "none"), name);
  }
  const { has_error, stream, status, status_class, from_ms, to_ms } = filters;
  if (has_error !== undefined) add("Result", has_error ? "failed" : "succeeded", "has_error");
  if (stream !== undefined) add("Streamed", stream ? "yes" : "no", "stream");
  if (status !== undefined) add("Status", String(status), "status");
  if (status_class !== undefined) add("Status", `${status_class}xx`, "status_class");
  if (from_ms !== undefined && !period) add("From", moment(from_ms, now), "from", "from_ms");
  if (to_ms !== undefined) add("Until", moment(to_ms, now), "to", "to_ms");
  return chips;
}
