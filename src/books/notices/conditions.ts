/** What is worth a notice: thresholds of budgets and accounts, accounts that failed, and an upstream that fails for minutes. */

import { percent, significant, zonedTime } from "../../lib/format";
import type { Account } from "../../people/accounts/account";
import { isCounted, isUsedUp } from "../../people/accounts/quota";
import { budgetItem } from "../../people/budgets/budget-list";
import type { BudgetState } from "../../people/budgets/entries";
import { textOf } from "../../people/budgets/holders";
import { amountOf, consequenceOf, ofHolder } from "../../people/budgets/sentences";
import { type Loss, lossInWords } from "../changes/losses";
import { type GivenWarning, isPlainFact, warningInWords } from "../changes/warnings";

export interface Notice {
  /** A notice of the same id is sent once. It contains the period, so that the next period has its own. */
  id: string;
  type: "budget" | "account" | "upstream" | "test";
  severity: "info" | "warning" | "error";
  /** A few words. */
  title: string;
  /** A sentence: what happened, and what to do. */
  message: string;
  /** The ids of the notices that it stands for, if it stands for several. */
  of?: readonly string[];
  /** Missing where it is about the owner, the server or a whole budget: what many may have at once is gathered into one notice. */
  about?: "members" | "holders of budgets";
  /** The log has said so already. */
  isLogged?: true;
}

/** One notice for the highest threshold that a budget has reached, and one for its forecast; for each of its holders, if it has any. */
export const budgetNotices = (states: readonly BudgetState[], now: number): Notice[] =>
  states.flatMap((state) => {
    const { holder } = state;
    if (holder === null) return noticesOf(state, now);
    // A member who was removed uses nothing more.
    if (holder.name === null) return [];
    const about = holder.member === "" ? "holders of budgets" : "members";
    return noticesOf(state, now).map((each) => ({ ...each, about }));
  });

function noticesOf(state: BudgetState, now: number): Notice[] {
  const { budget, holder, used, resetsAt, startedAt } = state;
  const share = used / budget.limit;
  // Not the name of a member, which another person may have later.
  const id = `budget ${budget.unit} ${budget.per} ${budget.name} ${startedAt}${holder ? ` ${textOf(holder)}` : ""}`;
  const name = `${budget.name}${ofHolder(holder)}`;
  const what = `${significant(used)} of ${amountOf(budget.limit, budget)} used`;
  const until = ` It resets at ${zonedTime(resetsAt, now)}.`;
  if (share >= 1)
    return notice(
      `${id} 1`,
      "budget",
      "error",
      `Budget ${name} is used up`,
      `${what}. ${consequenceOf(budget)}${until}`,
    );
  const reached = highest(budget.warn, share);
  const { forecast_ends_at_ms: endsAt } = budgetItem(state, now);
  return [
    ...(reached === undefined
      ? []
      : notice(
          `${id} ${reached}`,
          "budget",
          "warning",
          `Budget ${name}: ${percent(reached)} used`,
          `${what}.${until}`,
        )),
    // Of many, most would have one.
    ...(endsAt === null || holder !== null
      ? []
      : notice(
          `${id} forecast`,
          "budget",
          "warning",
          `Budget ${budget.name} will not last`,
          `At the present rate it is used up at ${zonedTime(endsAt, now)}, before it resets. So far: ${what}.`,
        )),
  ];
}

interface NoticedAccounts {
  /** Those of the whole team. */
  accounts: readonly Account[];
  /** Shares of a quota; of the owner's accounts only. */
  thresholds: readonly number[];
  /** The name of a member; undefined if there is none of this id. */
  nameOf(member: string): string | undefined;
}

/** Of members' accounts: what keeps them from serving. What is left of their quotas concerns the members. */
export function accountNotices({ accounts, thresholds, nameOf }: NoticedAccounts, now: number): Notice[] {
  return accounts.flatMap((account) => {
    const { id, member } = account;
    if (member === null) return [...stateNotices(account, id), ...quotaNotices(account, id, thresholds, now)];
    const name = nameOf(member);
    if (name === undefined) return [];
    const called = `${id} of ${name}`;
    const all = [...stateNotices(account, called, name), ...quotaNotices(account, called, [], now)];
    return all.map((each) => ({ ...each, about: "members" }));
  });
}

function stateNotices({ key, state }: Account, called: string, member?: string): Notice[] {
  if (state.name !== "failed") return [];
  const reason = state.reason ?? "GitHub refuses it.";
  return state.suspended
    ? notice(
        `account ${key} suspended`,
        "account",
        "error",
        `Account ${called} is suspended`,
        `${reason} No account${member === undefined ? "" : ` of ${member}`} is used until a person has acted.`,
      )
    : notice(`account ${key} failed ${reason}`, "account", "error", `Account ${called} failed`, reason);
}

function quotaNotices(
  { key, knownQuota: quota }: Account,
  called: string,
  thresholds: readonly number[],
  now: number,
): Notice[] {
  if (!quota || !isCounted(quota) || quota.entitlement === null || quota.remaining === null) return [];
  const { entitlement, remaining, resetAt, overage, unit } = quota;
  const share = entitlement > 0 ? (entitlement - remaining) / entitlement : 1;
  const period = `account ${key} quota ${resetAt}`;
  const until = resetAt === null ? "" : ` It resets at ${zonedTime(resetAt, now)}.`;
  const name = unit === "credits" ? "AI credits" : unit === "chat" ? "chat messages" : "premium requests";
  if (isUsedUp(quota))
    return notice(
      `${period} 1`,
      "account",
      overage ? "error" : "warning",
      `Quota of ${called} is used up`,
      `${overage ? `Further requests are billed as overage, because GitHub permits it. Set neverOverage to stop that.` : `No ${name} are left.`}${until}`,
    );
  const reached = highest(thresholds, share);
  if (reached === undefined) return [];
  return notice(
    `${period} ${reached}`,
    "account",
    "warning",
    `Quota of ${called}: ${percent(reached)} used`,
    `${significant(Math.max(0, remaining))} of ${significant(entitlement)} ${name} are left.${until}`,
  );
}

/** Milliseconds for which a person's accounts must have been limited for their return to be worth a notice. */
const longLimit = 5 * 60_000;
/** Milliseconds for which such a notice is tried. */
const tellFor = 10 * 60_000;

/** Since when none of a person's accounts could serve for a limit, and since when one can again. Times are timestamps. */
export type EndingLimits = Map<string | null, { since: number; endedAt?: number }>;

/** Limits that have ended: whoever waited may go on. @param limits What was found before; it is brought up to date. */
export function returnNotices(limits: EndingLimits, { accounts, nameOf }: NoticedAccounts, now: number): Notice[] {
  for (const [member, own] of Map.groupBy(accounts, (account) => account.member)) {
    const known = limits.get(member);
    const isLimited = own.every(({ state }) => state.name === "exhausted" || state.name === "cooling");
    if (isLimited && (!known || known.endedAt !== undefined)) limits.set(member, { since: now });
    else if (!isLimited && known && known.endedAt === undefined)
      if (own.some(({ state }) => state.name === "ready"))
        // One whose accounts need a person is told of that.
        limits.set(member, { ...known, endedAt: now });
      else limits.delete(member);
  }
  return [...limits].flatMap(([member, { since, endedAt }]) => {
    if (endedAt === undefined) return [];
    const name = member === null ? undefined : nameOf(member);
    if (now - endedAt > tellFor || endedAt - since < longLimit || (member !== null && name === undefined)) {
      limits.delete(member);
      return [];
    }
    const whose = name === undefined ? "" : ` for ${name}`;
    const words = `No account could serve since ${zonedTime(since, now)}. Requests are served again${whose}.`;
    const [told] = notice(`ready ${member ?? "owner"} ${since}`, "account", "info", `Ready again${whose}`, words);
    return [name === undefined ? told! : { ...told!, about: "members" }];
  });
}

/** Notices about as many members, or holders of budgets, are sent one by one; more of them at once become one. */
const maxOfMany = 5;
/** Notices that are named in one. */
const maxListed = 20;

/** Many may have the same trouble at once, for example at the end of a month. */
export const gathered = (notices: readonly Notice[]): Notice[] =>
  [...Map.groupBy(notices, ({ about }) => about)].flatMap(([about, own]) =>
    about === undefined || own.length <= maxOfMany ? own : [asOne(own, about)],
  );

function asOne(notices: readonly Notice[], about: string): Notice {
  const [{ id, type }] = notices as readonly [Notice, ...Notice[]];
  const listed = notices.slice(0, maxListed).map(({ title }) => title);
  const more = notices.length - listed.length;
  return {
    id: `${about} ${id}`,
    of: notices.map((each) => each.id),
    type,
    severity: notices.some(({ severity }) => severity === "error") ? "error" : "warning",
    title: `${notices.length} notices about ${about}`,
    message: `${listed.join("; ")}${more > 0 ? `; and ${more} more` : ""}. Each has a line of its own in the log.`,
  };
}

/** The requests of the last {@link watchedMs}. */
interface RecentRequests {
  count: number;
  /** Those that ended with a status of 500 or above. */
  failed: number;
  /** Timestamp of the oldest one; null if there is none. */
  firstAt: number | null;
}

/** Milliseconds. */
export const watchedMs = 10 * 60_000;
/** Milliseconds, and requests, for which an upstream must fail to be worth a notice. */
const failingFor = 3 * 60_000;
const minFailures = 3;

export const isFailing = ({ count, failed, firstAt }: RecentRequests, now: number): boolean =>
  failed >= minFailures && failed === count && firstAt !== null && now - firstAt >= failingFor;

/** @param since Timestamp of the first failure. */
export function upstreamNotices(since: number, now: number): Notice[] {
  return notice(
    `upstream ${since}`,
    "upstream",
    "error",
    "GitHub Copilot is failing",
    `Every request since ${zonedTime(since, now)} has failed. \`dragoman doctor\` checks the connection; https://www.githubstatus.com shows GitHub's state.`,
  );
}

/** The id has no time: one that stays missing is told once, also after a restart. */
export const lossNotices = (losses: readonly Loss[], now: number): Notice[] =>
  losses.map((loss) => ({
    id: `upstream missing ${loss.where} ${loss.member}`,
    type: "upstream",
    severity: "warning",
    title: "GitHub Copilot has changed",
    message: lossInWords(loss, now),
    isLogged: true,
  }));

/** GitHub's words are part of the id: it is told once, also after a restart, and again when it says something else. */
export const warningNotices = (warnings: readonly GivenWarning[]): Notice[] =>
  warnings.flatMap((warning) =>
    notice(
      `upstream warning ${warning.code} ${Bun.hash(warning.message).toString(36)}`,
      "upstream",
      isPlainFact(warning) ? "info" : "warning",
      isPlainFact(warning) ? "Prompts may be kept" : "GitHub warns",
      warningInWords(warning),
    ),
  );

const notice = (
  id: string,
  type: Notice["type"],
  severity: Notice["severity"],
  title: string,
  message: string,
): Notice[] => [{ id, type, severity, title, message }];

const highest = (thresholds: readonly number[], share: number): number | undefined =>
  thresholds.filter((threshold) => share >= threshold).sort((a, b) => b - a)[0];
