/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What is left, what was used, what failed: the first page, and the answer to "may I go on like this?". */
import type { App } from "../../../app";
import { type AccountItem, listAccounts } from "../../api/accounts";
import { hourMs } from "../../ui/days";
import { plural, Sentence } from "../../ui/format";
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
          <h2 id="attention">Needs your attention</h2>
          {slot}
        </section>
        <section aria-labelledby="left">
          <h2 id="left">What is left</h2>
          {slot}
        </section>
        <section aria-labelledby="used">
          <h2 id="used">What was used</h2>
          {slot}
        </section>
      </Page>
    ),
    parts: partsOf(app, url, exposed, now),
  };
}

function partsOf(app: App, url: URL, exposed: boolean, now: number): StreamedPage["parts"] {
  let asked: Promise<AccountItem[]> | undefined;
  const accounts = () => {
    asked ??= listAccounts(app);
    return asked;
  };
  return [
    async () => {
      const recent = await app.history.totals({ from_ms: now - hourMs });
      return <Attentions found={alertsOf(app, await accounts(), recent, exposed, now)} />;
    },
    async () => <Left accounts={await accounts()} now={now} />,
    () => usageSection(app, url, now),
  ];
}

const RunningNow = ({ count: running }: { count: number }) =>
  running === 0 ? (
    <span class="soft">nothing is running</span>
  ) : (
    <a href="/admin/requests?follow=1" class="badge busy">
      {plural(running, "request")} running
    </a>
  );

const DemoNote = () => (
  <p class="note info">
    <strong>DEMO.</strong> A scripted upstream answers: the accounts, models and prices are made up, nothing is charged,
    and nothing leaves this machine.
  </p>
);

function Attentions({ found }: { found: Alert[] }): Markup {
  if (found.length === 0) return <p class="calm">Nothing. Accounts, history and config are well.</p>;
  return (
    <ul class="alerts">
      {found.map(({ tone, what, todo, href }) => (
        <li class={`note ${tone}`}>
          <strong>{what}</strong> <Sentence of={todo} /> {href && <a href={href}>Look at it</a>}
        </li>
      ))}
    </ul>
  );
}

function Left({ accounts, now }: { accounts: AccountItem[]; now: number }): Markup {
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
