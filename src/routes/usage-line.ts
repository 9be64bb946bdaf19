/** The usage of the accounts as one line of text, for status bars: `GET /usage/line` and `dragoman usage --format`. */

import { percent, significant, zonedTime } from "../lib/format";
import { printable } from "../lib/logger";
import { isCounted } from "../people/accounts/quota";
import type { lineFields } from "./line-fields";
import type { UsageItem } from "./usage";

const defaultLineFormat = "{account}: {left}";

const units: Record<UsageItem["unit"], string> = { premium: "premium", credits: "credits", chat: "chat", unknown: "" };

/** The unit in few letters: with them a session's whole line fits into 80 columns. */
const shortUnits: Record<UsageItem["unit"], string> = { ...units, credits: "cr" };

/** The fields of a format. `?` stands for what is not known. */
const fields: Record<(typeof lineFields)[number], (usage: UsageItem, now: number) => string> = {
  account: ({ id }) => id,
  left: (usage) =>
    usage.unlimited
      ? "unlimited"
      : [amount(usage, usage.remaining), shortUnits[usage.unit], "left"].filter(Boolean).join(" "),
  remaining: (usage) => (usage.unlimited ? "∞" : amount(usage, usage.remaining)),
  entitlement: (usage) => (usage.unlimited ? "∞" : amount(usage, usage.entitlement)),
  used: (usage) => amount(usage, usedOf(usage)),
  percent: (usage) => {
    const used = usedOf(usage);
    if (usage.unlimited) return percent(1);
    return used === null || !isCounted(usage) || !usage.entitlement
      ? "?"
      : percent(Math.max(0, 1 - used / usage.entitlement));
  },
  unit: ({ unit }) => units[unit],
  state: ({ state }) => state,
  reset: ({ reset_at }, now) => (reset_at === null ? "?" : zonedTime(Date.parse(reset_at), now)),
};

/** @param format Text with `{fields}`; an unknown field stays as it is. */
export function usageLine(usages: readonly UsageItem[], format = defaultLineFormat, now = Date.now()): string {
  const lines = usages.map((usage) =>
    format.replace(/\{(\w+)\}/g, (text, name: string) =>
      Object.hasOwn(fields, name) ? fields[name as keyof typeof fields](usage, now) : text,
    ),
  );
  return printable(lines.map((line) => line.trim()).join(" · "));
}

const usedOf = ({ entitlement, remaining }: UsageItem): number | null =>
  entitlement === null || remaining === null ? null : entitlement - remaining;

const amount = (usage: UsageItem, value: number | null): string =>
  value === null || !isCounted(usage) ? "?" : significant(value);
