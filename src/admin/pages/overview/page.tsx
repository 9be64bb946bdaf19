/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The first page: alerts, remaining quota and usage. */
import type { App } from "../../../app";
import { hourMs, plural } from "../../../format";
import { type AccountItem, listAccounts } from "../../api/accounts";
import { Sentence } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { AccountCard, SignInHint } from "../accounts/card";
import { type Alert, alertsOf } from "../alerts";
import { usageSection } from "./usage";

export function overviewPage({ app, frame, url, exposed }: PageContext): StreamedPage {
  const now = app.now();
  return {
    page: (
      <Page frame={frame} title="Overview" current="/admin" aside={<RunningNow count={app.inFlight.count} />}>
        {app.demo && <DemoNote />}
        <section aria-labelledby="attention" class="attention">
          <h2 id="attention">Needs attention</h2>
          {slot}
        </section>
        <section aria-labelledby="quota">
          <h2 id="quota">Remaining quota</h2>
          {slot}
        </section>
        <section aria-labelledby="usage">
          <h2 id="usage">Usage</h2>
          {slot}
        </section>
      </Page>
    ),
    parts: partsOf(app, url, exposed, now),
  };
}

function partsOf(app: App, url: URL, exposed: boolean, now: number): StreamedPage["parts"] {
  let pending: Promise<AccountItem[]> | undefined;
  const accounts = () => {
    pending ??= listAccounts(app);
    return pending;
  };
  return [
    async () => {
      const recent = await app.history.totals({ from_ms: now - hourMs });
      return <Alerts alerts={alertsOf(app, await accounts(), recent, exposed, now)} />;
    },
    async () => <Quotas accounts={await accounts()} now={now} />,
    () => usageSection(app, url, now),
  ];
}

const RunningNow = ({ count: running }: { count: number }) =>
  running === 0 ? (
    <span class="soft">no running requests</span>
  ) : (
    <a href="/admin/requests?follow=1" class="badge busy">
      {plural(running, "request")} running
    </a>
  );

const DemoNote = () => (
  <p class="note info">
    <strong>DEMO.</strong> Responses come from a simulated upstream on this machine. Accounts, models and prices are
    fictional, nothing is charged, and no data leaves this machine.
  </p>
);

function Alerts({ alerts }: { alerts: Alert[] }): Markup {
  if (alerts.length === 0) return <p class="calm">Nothing. Accounts, history and config are OK.</p>;
  return (
    <ul class="alerts">
      {alerts.map(({ tone, title, detail, href }) => (
        <li class={`note ${tone}`}>
          <strong>{title}</strong> <Sentence of={detail} /> {href && <a href={href}>View details</a>}
        </li>
      ))}
    </ul>
  );
}

function Quotas({ accounts, now }: { accounts: AccountItem[]; now: number }): Markup {
  if (accounts.length === 0)
    return (
      <div class="empty">
        <h3>No account is signed in</h3>
        <SignInHint />
      </div>
    );
  return (
    <ul class="cards few">
      {accounts.map((account) => (
        <li>
          <AccountCard account={account} now={now} />
        </li>
      ))}
    </ul>
  );
}
