/** @jsxRuntime automatic @jsxImportSource #jsx */
/** A card about an account: state, remaining quota, reset and forecast. */

import {
  day,
  formatCount,
  moment,
  percent,
  planNames,
  shorten,
  significant,
  span,
  unitNames,
} from "../../../lib/format";
import { entryOf } from "../../../lib/json";
import { isCounted } from "../../../people/accounts/quota";
import type { AccountItem } from "../../api/accounts";
import { Meter } from "../../ui/chart";
import { Ago, Sentence, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import { forecastOf } from "../forecast";

interface AccountCardProps {
  account: AccountItem;
  now: number;
  children?: Child;
}

export function AccountCard({ account, now, children }: AccountCardProps): Markup {
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
        {account_type === null ? "Unknown plan" : <Value of={entryOf(planNames, account_type) ?? account_type} />}
        {account.host !== "github.com" && (
          <>
            {" "}
            · <Value of={account.host} />
          </>
        )}
        {temporary && " · not saved"}
      </p>
      {account.auto_only && (
        <p class="soft">
          This plan offers Auto only: tools ask for the model <code>auto</code>, and GitHub Copilot chooses. In GitHub's
          own clients Copilot Fusion stands in its place.
        </p>
      )}
      <Remaining account={account} />
      <ResetLine account={account} now={now} />
      {account.reason !== null && (
        <p class="reason">
          <Sentence of={account.reason} />
        </p>
      )}
      {account.limited_models.map(({ model, until_ms, reason }) => (
        <p class="reason">
          <code>{shorten(model, 80)}</code> cools down until {moment(until_ms, now)}: <Sentence of={reason} />
        </p>
      ))}
      {account.stale && <Stale account={account} now={now} />}
      {children}
    </article>
  );
}

/** A failed account has said already why GitHub was not asked. */
const Stale = ({ account: { state, updated_at_ms, quota_error }, now }: { account: AccountItem; now: number }) =>
  state === "failed" ? (
    updated_at_ms !== null && (
      <p class="soft">
        Last updated <Ago at={updated_at_ms} now={now} />.
      </p>
    )
  ) : (
    <p class="soft">
      Last updated <Ago at={updated_at_ms} now={now} never="at an unknown time" />:{" "}
      <Sentence of={quota_error ?? "GitHub could not be reached."} />
    </p>
  );

export function StateBadge({ account }: { account: Pick<AccountItem, "state"> }): Markup {
  const { tone, name } = states[account.state];
  return <span class={`badge ${tone}`}>{name}</span>;
}

const states: Record<AccountItem["state"], { tone: string; name: string }> = {
  ready: { tone: "good", name: "Ready" },
  cooling: { tone: "warn", name: "Cooling down" },
  exhausted: { tone: "warn", name: "Exhausted" },
  failed: { tone: "bad", name: "Failed" },
  paused: { tone: "off", name: "Paused" },
};

type Left = Pick<AccountItem, "runtime" | "unit">;

/** `212 of 300 premium requests left`; undefined if it is not known. */
export function remainingText({ runtime, unit }: Left): string | undefined {
  const { entitlement, remaining, unlimited } = runtime;
  if (unlimited) return "unlimited";
  if (remaining === null || !isCounted({ ...runtime, unit })) return undefined;
  const all = entitlement === null ? "" : ` of ${significant(entitlement)}`;
  return `${significant(Math.max(0, remaining))}${all}${unit === "unknown" ? "" : ` ${unitNames[unit]}`} left`;
}

/** The same, large, and a bar. */
function Remaining({ account }: { account: Left }): Markup {
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
        <span class="unknown">Remaining quota unknown</span>
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
      <Pair name="Forecast">
        <Forecast account={account} now={now} />
      </Pair>
      {(overage || (overage_count ?? 0) > 0) && (
        <Pair name="Overage">
          {overage ? "allowed, billed separately" : "not allowed"}
          {overage_count === null
            ? ", how much so far is unknown"
            : overage_count > 0 && `, ${formatCount(overage_count)} so far`}
        </Pair>
      )}
      {until_ms !== null && <Pair name="Retry at">{moment(until_ms, now)}</Pair>}
    </dl>
  );
}

function Forecast({ account, now }: { account: AccountItem; now: number }): Markup {
  const forecast = forecastOf(account, now);
  switch (forecast.kind) {
    case "unlimited":
      return <>never exhausted</>;
    case "exhausted":
      return <>exhausted</>;
    case "unknown":
      return <span class="unknown">{forecast.why}</span>;
    case "lasts":
      return <>about {significant(Math.floor(forecast.left))} left at the reset</>;
    case "ends":
      return (
        <span class="fault">
          exhausted on {day(forecast.at, now)}, {span(forecast.before)} before the reset
        </span>
      );
  }
}

/** How to add the first account. */
export const SignInHint = ({ isOwner }: { isOwner: boolean }) => (
  <>
    <p>
      <a class="button primary" href="/admin/accounts#add">
        Sign in to GitHub
      </a>
    </p>
    <p>
      {isOwner && (
        <>
          Or run <code>dragoman auth</code> in a terminal.{" "}
        </>
      )}
      The account is available immediately{isOwner && ", without a restart"}.
    </p>
  </>
);
