/** What asks for a person: faults first, then what will be one, then what is good to know. */
import type { App } from "../../app";
import type { Totals } from "../../history/history";
import type { AccountItem } from "../api/accounts";
import { hourMs } from "../ui/days";
import { day, formatCount, moment, plural, span } from "../ui/format";
import { requestsPath } from "../ui/links";
import { forecastOf } from "./forecast";

export interface Alert {
  tone: "bad" | "warn" | "info";
  what: string;
  todo: string;
  href?: string;
}

/** What a person should know or do, the worst first. */
export function alertsOf(app: App, accounts: AccountItem[], lastHour: Totals, exposed: boolean, now: number): Alert[] {
  const found: Alert[] = [];
  const say = (tone: Alert["tone"], what: string, todo: string, href?: string) =>
    void found.push({ tone, what, todo, href });
  const { config, history, clientKeys, pool } = app;
  const stopped = pool.stopped();
  if (stopped) say("bad", "Everything has stopped: GitHub has blocked an account.", stopped.message, "/admin/accounts");
  if (history.degraded)
    say(
      "bad",
      "The history cannot be written.",
      "Requests go on, but are not remembered: is the disk full?",
      "/admin/health",
    );
  if (config.fault !== undefined)
    say("bad", "The config file does not hold.", `${config.fault} What held before goes on.`, "/admin/config");
  if (exposed && clientKeys.length === 0)
    say(
      "bad",
      "Anybody who reaches this machine may use your accounts.",
      "It listens beyond this machine, and no client key is set.",
      "/admin/config",
    );
  if (accounts.length === 0)
    say("bad", "No account is signed in.", "Until one is, requests are refused.", "/admin/accounts");
  for (const account of accounts) {
    const { account_id: id, account_key, state, reason, until_ms } = account;
    const until = until_ms === null ? "" : ` until ${moment(until_ms, now)}`;
    if (state === "failed") say("bad", `${id} needs you.`, reason ?? "No reason is known.", "/admin/accounts");
    else if (state === "exhausted") say("warn", `${id} is used up${until}.`, reason ?? "", "/admin/accounts");
    else if (state === "cooling") say("warn", `${id} rests${until}.`, reason ?? "", "/admin/accounts");
    const forecast = forecastOf(account, now);
    if (state === "ready" && forecast.kind === "ends")
      say(
        "warn",
        `${id} will be used up on ${day(forecast.at, now)}.`,
        `At this pace, ${span(forecast.before)} before the reset.`,
        requestsPath({ account_key }),
      );
  }
  const { request_count: requests, error_count: errors } = lastHour;
  if (requests >= 5 && errors / requests >= 0.2)
    say(
      "warn",
      `${formatCount(errors)} of ${plural(requests, "request")} failed in the last hour.`,
      "",
      requestsPath({ has_error: true, from_ms: now - hourMs }),
    );
  if (config.waiting.length > 0)
    say("info", `${config.waiting.join(", ")} in the config file counts from the next start.`, "", "/admin/config");
  const order = ["bad", "warn", "info"];
  return found.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone));
}
