/** @jsxRuntime automatic @jsxImportSource #jsx */
/** An account at a glance: what is left, until when, and how long it lasts at this pace. */
import { isCounted } from "../../../accounts/quota";
import { entryOf } from "../../../json";
import type { AccountItem } from "../../api/accounts";
import { Meter } from "../../ui/chart";
import { Ago, day, formatCount, moment, percent, Sentence, significant, span, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import { forecastOf } from "../forecast";

export function AccountCard({ account, now }: { account: AccountItem; now: number }): Markup {
  const { account_id, account_key, account_type, temporary } = account;
  return (
    <article class="card account">
      <header>
        <h3>
          <a href={requestsPath({ account_key })}>
            <Value of={account_id} max={32} />
          </a>
        </h3>
        <StateBadge account={account} />
      </header>
      <p class="soft">
        {account_type === null ? "plan unknown" : <Value of={entryOf(planNames, account_type) ?? account_type} />}
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
  if (remaining === null || !isCounted({ ...account.runtime, unit: account.unit }))
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
      <Pair name="Resets">
        {reset === null ? <span class="unknown">unknown</span> : `${day(reset, now)}, in ${span(reset - now)}`}
      </Pair>
      <Pair name="At this pace">
        <Forecast account={account} now={now} />
      </Pair>
      {(overage || overage_count > 0) && (
        <Pair name="Beyond it">
          {overage ? "allowed, and paid for" : "not allowed"}
          {overage_count > 0 && `, ${formatCount(overage_count)} so far`}
        </Pair>
      )}
      {until_ms !== null && (
        <Pair name={account.state === "cooling" ? "Rests until" : "Until"}>{moment(until_ms, now)}</Pair>
      )}
    </dl>
  );
}

function Forecast({ account, now }: { account: AccountItem; now: number }): Markup {
  const forecast = forecastOf(account, now);
  switch (forecast.kind) {
    case "unlimited":
      return <>never used up</>;
    case "used-up":
      return <>used up now</>;
    case "unknown":
      return <span class="unknown">{forecast.why}</span>;
    case "lasts":
      return <>about {significant(Math.floor(forecast.left))} left at the reset</>;
    case "ends":
      return (
        <span class="fault">
          until {day(forecast.at, now)}, {span(forecast.before)} before the reset
        </span>
      );
  }
}

/** Where there is none: how one comes. */
export const SignInHint = () => (
  <p>
    Run <code>dragoman auth</code> in a terminal: it shows a code to enter at GitHub, and the account serves at once,
    without a restart.
  </p>
);
