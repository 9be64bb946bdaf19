/** Formats quota and state for people, the same way in every command. */

import { day, dayMs, percent, planNames, span, unitNames, zonedTime } from "../lib/format";
import { entryOf } from "../lib/json";
import { isCounted } from "../people/accounts/quota";
import type { UsageItem } from "../routes/usage";
import { columns, tableRows, wrapped } from "./layout";
import { styled } from "./terminal";

/**
 * One line for each account, followed by the reason if it cannot serve.
 * @param first The number of the first account; without it, accounts are not numbered.
 */
export function usageLines(usages: UsageItem[], first?: number): string[] {
  const now = Date.now();
  const counted = first !== undefined;
  const rows = usages.map((usage, at) => [
    ...(counted ? [String(first + at)] : []),
    usage.id,
    usage.plan === null ? "unknown" : (entryOf(planNames, usage.plan) ?? usage.plan),
    usage.unit === "unknown" ? "unknown" : unitNames[usage.unit],
    remainingInWords(usage),
    quotaBar(usage),
    usage.reset_at === null ? "unknown" : resetCell(Date.parse(usage.reset_at), now),
    stateOf(usage, now),
  ]);
  const head = [...(counted ? ["#"] : []), "account", "plan", "unit", "remaining", "left", "resets", "state"];
  const [title = [], ...lines] = tableRows([head, ...rows], { spare: ["plan", "unit"] });
  return [
    ...title,
    ...lines.flatMap((row, at) => [...row, ...whyOf(usages[at]!).map((sentence) => wrapped(sentence, 3))]),
  ];
}

/** Of a bar, in characters. */
const barWidth = 10;

/** `██████░░░░ 63%`: what is left, green, yellow below a quarter and red below a tenth; empty if it is not known. */
export function quotaBar(usage: UsageItem): string {
  const { remaining, entitlement, unlimited } = usage;
  if (unlimited || remaining === null || !entitlement || !isCounted(usage)) return "";
  const share = Math.min(1, Math.max(0, remaining / entitlement));
  const full = Math.ceil(share * barWidth);
  const tone = share <= 0.1 ? "red" : share <= 0.25 ? "yellow" : "green";
  // No line ends between the two.
  return `${styled(tone, "█".repeat(full) + "░".repeat(barWidth - full))}\u00a0${percent(share)}`;
}

/** `217.34 of 300`, `∞` or `unknown`, with the age of the numbers if GitHub could not be reached. */
export function remainingInWords(usage: UsageItem): string {
  const { remaining, entitlement, unlimited, overage, overage_count } = usage;
  const paid = overage
    ? ` (requests beyond that are billed: ${overage_count === null ? "how many is unknown" : `${amount(overage_count)} so far`})`
    : "";
  const aged =
    usage.stale && usage.updated_at ? ` (stale: ${span(Date.now() - Date.parse(usage.updated_at))} old)` : "";
  if (unlimited) return `∞${aged}`;
  if (remaining === null || !isCounted(usage)) return `unknown${paid}${aged}`;
  return `${amount(remaining)}${entitlement === null ? "" : ` of ${amount(entitlement)}`}${paid}${aged}`;
}

/** In a table: the day alone where there is little room, if it is neither today nor tomorrow. */
export const resetCell = (at: number, now: number): string =>
  columns() < 100 && at - now > 2 * dayMs ? day(at, now) : zonedTime(at, now);

export const resetInWords = ({ reset_at }: Pick<UsageItem, "reset_at">, now = Date.now()): string =>
  reset_at === null ? "unknown" : zonedTime(Date.parse(reset_at), now);

/** Bold, as a yellow word cannot be read on white: 1.7 to 1 with the colours of xterm (computed, 2026-11). */
const stateTones = { ready: "green", cooling: "bold", exhausted: "bold", failed: "red", paused: "dim" } as const;

export const stateOf = ({ state, until }: UsageItem, now = Date.now()): string =>
  styled(stateTones[state], state) + (until === null ? "" : ` until ${zonedTime(Date.parse(until), now)}`);

function whyOf({ state, reason, quota_error, limited_models }: UsageItem): string[] {
  const why = state !== "ready" && reason !== null ? [reason] : quota_error === null ? [] : [quota_error];
  const limited = limited_models.map(({ model, until, reason }) => {
    const end = until === null ? "" : ` until ${zonedTime(Date.parse(until), Date.now())}`;
    return `${model} cools down${end}: ${reason}`;
  });
  return [...why, ...limited];
}

const amount = (value: number) => (Math.round(value * 100) / 100).toLocaleString("en-US");
