/** @jsxRuntime automatic @jsxImportSource #jsx */
/** An account at a glance: what is left, until when, and how long it lasts at this pace. */
import type { App } from "../app";
import type { Totals } from "../history/history";
import type { AccountItem } from "./accounts";
import { Meter } from "./chart";
import { Ago, count, day, moment, percent, plural, Sentence, significant, span, Value } from "./figures";
import type { Markup } from "./jsx/jsx-runtime";
import { requestsPath } from "./links";

export function AccountCard({ account, now }: { account: AccountItem; now: number }): Markup {
  const { account_id, account_type, temporary } = account;
  return (
    <article class="card account">
      <header>
        <h3>
          <a href={requestsPath({ account_id })}>
            <Value of={account_id} most={32} />
          </a>
        </h3>
        <StateBadge account={account} />
      </header>
      <p class="soft">
        {account_type === null ? "plan unknown" : <Value of={planNames[account_type] ?? account_type} />}
        {account.host !== "github.com" && (
          <>
            {" "}
            · <Value of={account.host} />
          </>
        )}
        {temporary && " · for this run"}
      </p>
      <Remaining account={account} />
      <ResetLine account={account} now={now} />
      {account.reason !== null && account.state !== "ready" && (
        <p class="reason">
          <Sentence of={account.reason} />
        </p>
      )}
      {account.stale && (
        <p class="soft">
          As of <Ago at={account.updated_at_ms} now={now} never="an unknown time" />:{" "}
          <Sentence of={account.quota_error ?? "GitHub could not be asked."} />
        </p>
      )}
    </article>
  );
}

const planNames: Record<string, string> = {
  free: "Copilot Free",
  individual: "Copilot Pro",
  individual_pro: "Copilot Pro+",
  business: "Copilot Business",
  enterprise: "Copilot Enterprise",
};

const unitNames: Record<AccountItem["unit"], string> = {
  premium: "premium requests",
  credits: "AI credits",
  chat: "chat messages",
  unknown: "of its quota",
};

export function StateBadge({ account }: { account: AccountItem }): Markup {
  const { tone, name } = states[account.state];
  return <span class={`badge ${tone}`}>{name}</span>;
}

const states: Record<AccountItem["state"], { tone: string; name: string }> = {
  ready: { tone: "good", name: "ready" },
  cooling: { tone: "warn", name: "resting" },
  exhausted: { tone: "warn", name: "used up" },
  failed: { tone: "bad", name: "needs you" },
};

/** `212 of 300 premium requests left`, and a bar. */
export function Remaining({ account }: { account: AccountItem }): Markup {
  const { entitlement, remaining, unlimited } = account.runtime;
  const unit = unitNames[account.unit];
  if (unlimited)
    return (
      <p class="left">
        <span class="big">∞</span> <span class="unit">unlimited</span>
      </p>
    );
  if (remaining === null)
    return (
      <p class="left">
        <span class="unknown">How much is left is unknown</span>
      </p>
    );
  const share = entitlement ? remaining / entitlement : undefined;
  const tone = share === undefined ? undefined : share <= 0.1 ? "bad" : share <= 0.25 ? "warn" : "good";
  return (
    <>
      <p class="left">
        <span class="big num">{significant(Math.max(0, remaining))}</span>{" "}
        <span class="unit">
          {entitlement === null ? `${unit} left` : `of ${significant(entitlement)} ${unit} left`}
        </span>
      </p>
      {share !== undefined && <Meter share={share} label={`${percent(Math.max(0, share))} left`} tone={tone} />}
    </>
  );
}

function ResetLine({ account, now }: { account: AccountItem; now: number }): Markup {
  const { reset_at_ms: reset, overage, overage_count, until_ms } = account;
  return (
    <dl class="pairs">
      <div>
        <dt>Resets</dt>
        <dd>{reset === null ? <span class="unknown">unknown</span> : `${day(reset, now)}, in ${span(reset - now)}`}</dd>
      </div>
      <div>
        <dt>At this pace</dt>
        <dd>
          <Forecast account={account} now={now} />
        </dd>
      </div>
      {(overage || overage_count > 0) && (
        <div>
          <dt>Beyond it</dt>
          <dd>
            {overage ? "allowed, and paid for" : "not allowed"}
            {overage_count > 0 && `, ${count(overage_count)} so far`}
          </dd>
        </div>
      )}
      {until_ms !== null && (
        <div>
          <dt>{account.state === "cooling" ? "Rests until" : "Until"}</dt>
          <dd>{moment(until_ms, now)}</dd>
        </div>
      )}
    </dl>
  );
}

function Forecast({ account, now }: { account: AccountItem; now: number }): Markup {
  const outlook = outlookOf(account, now);
  switch (outlook.kind) {
    case "unlimited":
      return <>never used up</>;
    case "used-up":
      return <>used up now</>;
    case "unknown":
      return <span class="unknown">{outlook.why}</span>;
    case "lasts":
      return <>about {significant(Math.floor(outlook.left))} left at the reset</>;
    case "ends":
      return (
        <span class="fault">
          until {day(outlook.at, now)}, {span(outlook.before)} before the reset
        </span>
      );
  }
}

export type Outlook =
  | { kind: "unlimited" | "used-up" }
  | { kind: "unknown"; why: string }
  | { kind: "lasts"; left: number }
  | { kind: "ends"; at: number; before: number };

/** What was used since the last reset, carried on to the next. Quotas run from month to month. */
export function outlookOf({ runtime, reset_at_ms: reset }: AccountItem, now: number): Outlook {
  const { entitlement, remaining, unlimited } = runtime;
  if (unlimited) return { kind: "unlimited" };
  if (remaining !== null && remaining <= 0) return { kind: "used-up" };
  if (entitlement === null || remaining === null || reset === null || reset <= now)
    return { kind: "unknown", why: "unknown" };
  const last = new Date(reset);
  last.setMonth(last.getMonth() - 1);
  const elapsed = now - last.getTime();
  if (elapsed < dayMs) return { kind: "unknown", why: "too early to tell" };
  const used = entitlement - remaining;
  const perMs = used / elapsed;
  const ahead = reset - now;
  const ends = now + remaining / perMs;
  return perMs > 0 && ends < reset
    ? { kind: "ends", at: ends, before: reset - ends }
    : { kind: "lasts", left: Math.max(0, remaining - perMs * ahead) };
}

const dayMs = 86_400_000;

export interface Attention {
  tone: "bad" | "warn" | "info";
  what: string;
  todo: string;
  href?: string;
}

/** What a person should know or do, the worst first. */
export function attentionOf(
  app: App,
  accounts: AccountItem[],
  lastHour: Totals,
  exposed: boolean,
  now: number,
): Attention[] {
  const found: Attention[] = [];
  const say = (tone: Attention["tone"], what: string, todo: string, href?: string) =>
    void found.push({ tone, what, todo, href });
  const { config, history, clientKeys } = app;
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
  for (const account of accounts) {
    const { account_id: id, state, reason, until_ms } = account;
    const until = until_ms === null ? "" : ` until ${moment(until_ms, now)}`;
    if (state === "failed") say("bad", `${id} needs you.`, reason ?? "No reason is known.", "/admin/accounts");
    else if (state === "exhausted") say("warn", `${id} is used up${until}.`, reason ?? "", "/admin/accounts");
    else if (state === "cooling") say("warn", `${id} rests${until}.`, reason ?? "", "/admin/accounts");
    const outlook = outlookOf(account, now);
    if (state === "ready" && outlook.kind === "ends")
      say(
        "warn",
        `${id} will be used up on ${day(outlook.at, now)}.`,
        `At this pace, ${span(outlook.before)} before the reset.`,
        requestsPath({ account_id: id }),
      );
  }
  const { request_count: requests, error_count: errors } = lastHour;
  if (requests >= 5 && errors / requests >= 0.2)
    say(
      "warn",
      `${count(errors)} of ${plural(requests, "request")} failed in the last hour.`,
      "",
      requestsPath({ has_error: true, from_ms: now - 3_600_000 }),
    );
  if (config.waiting.length > 0)
    say("info", `${config.waiting.join(", ")} in the config file counts from the next start.`, "", "/admin/config");
  const order = ["bad", "warn", "info"];
  return found.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone));
}
