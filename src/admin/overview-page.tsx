/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What is left, what was used, what failed: the first page, and the answer to "may I go on like this?". */
import type { App } from "../app";
import { AccountCard, SignInHint } from "./account-card";
import { type AccountItem, listAccounts } from "./accounts";
import { type Attention, attentionOf } from "./attention";
import { hourMs } from "./days";
import { plural, Sentence } from "./figures";
import type { Markup } from "./jsx/jsx-runtime";
import { Page } from "./layout";
import { used } from "./overview-used";
import { type SlowPage, slot } from "./slow";
import type { Visit } from "./visit";

export function overviewPage({ app, frame, url, exposed }: Visit): SlowPage {
  const now = app.now();
  return {
    page: (
      <Page frame={frame} title="Overview" current="/admin" aside={<RunningNow count={app.live.count} />}>
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

function partsOf(app: App, url: URL, exposed: boolean, now: number): SlowPage["parts"] {
  let asked: Promise<AccountItem[]> | undefined;
  const accounts = () => {
    asked ??= listAccounts(app);
    return asked;
  };
  return [
    async () => {
      const recent = await app.history.totals({ from_ms: now - hourMs });
      return <Attentions found={attentionOf(app, await accounts(), recent, exposed, now)} />;
    },
    async () => <Left accounts={await accounts()} now={now} />,
    () => used(app, url, now),
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

function Attentions({ found }: { found: Attention[] }): Markup {
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
