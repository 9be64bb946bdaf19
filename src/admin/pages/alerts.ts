/** The alerts of the overview: errors, warnings and notes. */

import { ProxyError } from "../../lib/errors";
import { day, formatCount, hourMs, moment, plural, span } from "../../lib/format";
import type { App, Scope } from "../../parts/app";
import { factsOf } from "../../parts/facts";
import { holderName } from "../../people/budgets/budget-list";
import { amountOf, consequenceOf } from "../../people/budgets/sentences";
import type { AccountItem } from "../api/accounts";
import { listBudgets } from "../api/budgets";
import { requestsPath } from "../ui/links";
import { forecastOf } from "./forecast";

export interface Alert {
  tone: "bad" | "warn" | "info";
  title: string;
  detail: string;
  href?: string;
}

/**
 * What concerns the accounts and requests that the app shows: a member's own, or the owner's.
 * @param lastHour Without failures whose client left: a person stopped those.
 * @param others Members have accounts, so the owner needs none.
 */
export function ownAlerts(
  { pool }: Scope,
  accounts: AccountItem[],
  lastHour: { requests: number; failed: number },
  now: number,
  others: boolean,
): Alert[] {
  const alerts: Alert[] = [];
  const add = (tone: Alert["tone"], title: string, detail: string, href?: string) =>
    void alerts.push({ tone, title, detail, href });
  const stopped = pool.suspensionError();
  if (stopped)
    add("bad", "All requests are stopped: GitHub has blocked an account.", stopped.message, "/admin/accounts");
  if (accounts.length === 0)
    add(
      others ? "info" : "bad",
      "No account is signed in.",
      `Your requests are refused until you sign in${others ? "; members' requests use their own accounts" : ""}.`,
      "/admin/accounts",
    );
  for (const account of accounts) {
    const { account_id: id, account_key, state, reason, until_ms } = account;
    const until = until_ms === null ? "" : ` until ${moment(until_ms, now)}`;
    if (state === "failed") add("bad", `${id} has failed.`, reason ?? "The reason is unknown.", "/admin/accounts");
    else if (state === "exhausted") add("warn", `${id} is exhausted${until}.`, reason ?? "", "/admin/accounts");
    else if (state === "cooling") add("warn", `${id} is cooling down${until}.`, reason ?? "", "/admin/accounts");
    const forecast = forecastOf(account, now);
    if (state === "ready" && forecast.kind === "ends")
      add(
        "warn",
        `${id} will be exhausted on ${day(forecast.at, now)}.`,
        `At the current rate, its quota runs out ${span(forecast.before)} before the reset.`,
        requestsPath({ account_key }),
      );
  }
  const { requests, failed } = lastHour;
  if (requests >= 5 && failed / requests >= 0.2)
    add(
      "warn",
      `${formatCount(failed)} of ${plural(requests, "request")} failed in the last hour.`,
      "",
      requestsPath({ has_error: true, from_ms: now - hourMs }),
    );
  return alerts;
}

/** Budgets that are used up, or will be, and that bind whoever looks at the page. */
export async function budgetAlerts(app: Scope, now: number): Promise<Alert[]> {
  const href = "/admin/budgets";
  try {
    const items = await listBudgets(app, { limit: maxNamed, offset: 0 });
    return items.flatMap((item): Alert[] => {
      const { name, unit, limit, used, then, holders, resets_at_ms: resetsAt, forecast_ends_at_ms: endsAt } = item;
      const until = ` It resets at ${moment(resetsAt, now)}.`;
      const spent = holders?.items.filter((holder) => holder.used >= holder.limit) ?? [];
      if (spent.length > 0) {
        const names = spent.map(holderName).join(", ");
        const more = spent.length === maxNamed && holders!.count > maxNamed ? " and maybe others" : "";
        const title = `The budget ${name} is used up for ${names}${more}.`;
        return [{ tone: "warn", title, detail: `${consequenceOf(item)}${until}`, href }];
      }
      const isSpent = used === null ? holders === null && item.exhausted : used >= limit;
      if (isSpent) {
        const tone = then === "stop" ? "bad" : "warn";
        return [{ tone, title: `The budget ${name} is used up.`, detail: `${consequenceOf(item)}${until}`, href }];
      }
      if (endsAt === null) return [];
      const title = `The budget ${name} will be used up at ${moment(endsAt, now)}.`;
      return [
        { tone: "warn", title, detail: `So far ${amountOf(used ?? 0, item)} of ${amountOf(limit, { unit })}.`, href },
      ];
    });
  } catch (thrown) {
    if (!(thrown instanceof ProxyError) || thrown.kind !== "unable") throw thrown;
    return [{ tone: "bad", title: "The budgets cannot be checked.", detail: thrown.message, href }];
  }
}

/** Names in one alert. */
const maxNamed = 5;

/** What concerns the server and the members: the owner's alone. */
export function serverAlerts(app: App): Alert[] {
  const { allAccounts, members } = app;
  const alerts: Alert[] = [];
  const add = (tone: Alert["tone"], title: string, detail: string, href: string) =>
    void alerts.push({ tone, title, detail, href });
  const failed = allAccounts.filter(({ member, state }) => member !== null && state.name === "failed");
  if (failed.length > 0) {
    const named = failed.slice(0, maxNamed).map(({ id, member }) => `${id} of ${members?.find(member!)?.name ?? "?"}`);
    const more = failed.length > maxNamed ? `, and ${failed.length - maxNamed} more` : "";
    const title = `${plural(failed.length, "account")} of members failed.`;
    add("warn", title, `${named.join(", ")}${more}. A new sign-in helps.`, "/admin/members");
  }
  // The accounts have alerts of their own.
  for (const { name, state, says, more, page } of factsOf(app))
    if (name !== "Accounts" && (state === "bad" || state === "warn")) add(state, says, more, page);
  return alerts;
}

const tones = ["bad", "warn", "info"];

export const bySeverity = (alerts: Alert[]): Alert[] =>
  alerts.toSorted((one, other) => tones.indexOf(one.tone) - tones.indexOf(other.tone));
