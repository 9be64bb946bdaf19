/** Formats quota and state for people, the same way in every command. */
import { isCounted } from "../accounts/quota";
import type { UsageItem } from "../api/usage";
import { zonedTime } from "../format";
import { printable } from "../logger";
import { table } from "./layout";

export const unitNames: Record<UsageItem["unit"], string> = {
  premium: "premium requests",
  credits: "AI credits",
  chat: "chat messages",
  unknown: "unknown",
};

/**
 * One line for each account, followed by the reason if it cannot serve.
 * @param first The number of the first account; without it, accounts are not numbered.
 */
export function usageLines(usages: UsageItem[], first?: number): string[] {
  const counted = first !== undefined;
  const rows = usages.map((usage, at) => [
    ...(counted ? [String(first + at)] : []),
    usage.id,
    usage.plan ?? "unknown",
    unitNames[usage.unit],
    remainingInWords(usage),
    resetInWords(usage),
    stateOf(usage),
  ]);
  const head = [...(counted ? ["#"] : []), "account", "plan", "unit", "remaining", "resets", "state"];
  const [title, ...lines] = table([head, ...rows]);
  return [
    title!,
    ...lines.flatMap((line, at) => [line, ...whyOf(usages[at]!).map((sentence) => `   ${printable(sentence)}`)]),
  ];
}

/** `217.34 of 300`, `∞` or `unknown`, with the age of the numbers if GitHub could not be reached. */
export function remainingInWords(usage: UsageItem, now = Date.now()): string {
  const { remaining, entitlement, unlimited, overage, overage_count } = usage;
  const paid = overage
    ? ` (requests beyond that are billed: ${overage_count === null ? "how many is unknown" : `${amount(overage_count)} so far`})`
    : "";
  const aged = usage.stale && usage.updated_at ? ` (stale: ${ageOf(now - Date.parse(usage.updated_at))} old)` : "";
  if (unlimited) return `∞${aged}`;
  if (remaining === null || !isCounted(usage)) return `unknown${paid}${aged}`;
  return `${amount(remaining)}${entitlement === null ? "" : ` of ${amount(entitlement)}`}${paid}${aged}`;
}

export const resetInWords = ({ reset_at }: UsageItem, now = Date.now()): string =>
  reset_at === null ? "unknown" : zonedTime(Date.parse(reset_at), now);

function stateOf({ state, until }: UsageItem, now = Date.now()): string {
  return until === null ? state : `${state} until ${zonedTime(Date.parse(until), now)}`;
}

function whyOf({ state, reason, quota_error, limited_models }: UsageItem, now = Date.now()): string[] {
  const why = state !== "ready" && reason !== null ? [reason] : quota_error === null ? [] : [quota_error];
  const limited = limited_models.map(({ model, until, reason }) => {
    const end = until === null ? "" : ` until ${zonedTime(Date.parse(until), now)}`;
    return `${model} cools down${end}: ${reason}`;
  });
  return [...why, ...limited];
}

const amount = (value: number) => String(Math.round(value * 100) / 100);

function ageOf(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000);
  if (minutes < 1) return "less than a minute";
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
