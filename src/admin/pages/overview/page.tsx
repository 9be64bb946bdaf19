/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The first page: alerts, remaining quota and usage. */

import type { RunningRequests } from "../../../books/live/running-requests";
import { formatAmount, formatCount, hourMs, plural } from "../../../lib/format";
import { clientClosed } from "../../../proxy/relay/client-error";
import { type AccountItem, listAccounts } from "../../api/accounts";
import { adviceFor } from "../../api/advice";
import { Sentence } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Section } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { AccountCard, SignInHint } from "../accounts/card";
import { type Alert, budgetAlerts, bySeverity, ownAlerts, serverAlerts } from "../alerts";
import { memberNamesFor } from "../member-names";
import { usageSection } from "./usage";

export function overviewPage(context: PageContext): StreamedPage {
  const { app, frame } = context;
  return {
    page: (
      <Page frame={frame} title="Overview" current="/admin" aside={<span data-live-aside="">{slot}</span>}>
        {app.demo && <DemoNote />}
        <div id="live" data-follow="/admin/requests/live" data-every={refreshMs} class="list">
          <section aria-labelledby="attention" class="attention">
            <h2 id="attention">Needs attention</h2>
            {slot}
          </section>
          {slot}
          <Section id="quota" title="Remaining quota">
            {slot}
          </Section>
          <Section id="usage" title="Usage">
            {slot}
          </Section>
        </div>
      </Page>
    ),
    parts: partsOf(context),
  };
}

/** Milliseconds. The page adds up a month, which takes longer than a list. */
const refreshMs = "3000";

function partsOf(context: PageContext): StreamedPage["parts"] {
  const { app, url } = context;
  const now = app.now();
  const { owner } = app;
  const isOwner = owner !== undefined;
  let pending: Promise<AccountItem[]> | undefined;
  const accounts = () => {
    pending ??= listAccounts(app);
    return pending;
  };
  return [
    async () => <RunningNow of={app.running} />,
    async () => {
      const [lastHour, left, ofBudgets] = await Promise.all([
        app.history.totals({ from_ms: now - hourMs }),
        app.history.totals({ from_ms: now - hourMs, status: clientClosed.status }),
        budgetAlerts(app, now),
      ]);
      const others = isOwner && owner.allAccounts.length > app.accounts.length;
      const recent = { requests: lastHour.request_count, failed: lastHour.error_count - left.error_count };
      const own = [...ownAlerts(app, await accounts(), recent, now, others), ...ofBudgets];
      const all = isOwner ? [...own, ...serverAlerts(owner)] : own;
      return <Alerts alerts={bySeverity(all)} isOwner={isOwner} />;
    },
    async () => <CheaperWays {...(await adviceFor(app))} isOwner={isOwner} />,
    async () => <Quotas accounts={await accounts()} isOwner={isOwner} now={now} />,
    () => usageSection(app, url, memberNamesFor(app), now),
  ];
}

function RunningNow({ of: running }: { of: RunningRequests }): Markup {
  const { elsewhere } = running;
  const count = running.list().length;
  const here = elsewhere ? " here" : "";
  if (count === 0)
    return (
      <span class="soft" title={elsewhere}>
        no running requests{here}
      </span>
    );
  return (
    <a href="/admin/requests?follow=1" class="badge busy" title={elsewhere}>
      {plural(count, "request")} running{here}
    </a>
  );
}

const DemoNote = () => (
  <p class="note info">
    <strong>DEMO.</strong> Responses come from a simulated upstream on this machine. Accounts, models, prices and the
    requests of the last two weeks are made up, nothing is charged, and no data leaves this machine.
  </p>
);

function Alerts({ alerts, isOwner }: { alerts: Alert[]; isOwner: boolean }): Markup {
  if (alerts.length === 0)
    return <p class="calm">Nothing. {isOwner ? "Accounts, history and config are OK." : "Your accounts are OK."}</p>;
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

type CheaperProps = Awaited<ReturnType<typeof adviceFor>> & { isOwner: boolean };

/** Nothing where nothing is worth it. */
const CheaperWays = ({ items, routes, followed, isOwner }: CheaperProps) =>
  items.length + routes.length + followed.length > 0 && (
    <section aria-labelledby="cheaper" class="attention">
      <h2 id="cheaper">What would have cost less, last 14 days</h2>
      <ul class="alerts">
        {items.map(({ says, change, at_most }) => (
          <li class="note info">
            <Sentence of={says} /> {at_most && <span class="soft">At most.</span>}
            <br />
            <Sentence of={change} />
          </li>
        ))}
        {followed.map(({ says }) => (
          <li class="note good">
            <Sentence of={says} />
          </li>
        ))}
        {routes.map((each) => (
          <li class="note info">
            The route <code>{each.route}</code> → <code>{each.model}</code> {savedInWords(each)}{" "}
            <a href={requestsPath({ route: each.route })}>{plural(each.request_count, "request")}</a>
            {each.saved_nano_credits !== null && each.unknown_saving_count > 0 && (
              <>, unknown for {formatCount(each.unknown_saving_count)} of them</>
            )}
            . {isOwner && <a href="/admin/config">Change or remove it</a>}
          </li>
        ))}
      </ul>
    </section>
  );

function savedInWords({ saved_nano_credits: saved }: CheaperProps["routes"][number]): string {
  if (saved === null) return "saved an unknown amount in";
  return `${saved < 0 ? "cost" : "saved"} about ${formatAmount(Math.abs(saved))} credits${saved < 0 ? " more" : ""} in`;
}

interface QuotasProps {
  accounts: AccountItem[];
  isOwner: boolean;
  now: number;
}

function Quotas({ accounts, isOwner, now }: QuotasProps): Markup {
  if (accounts.length === 0)
    return (
      <div class="empty">
        <SignInHint isOwner={isOwner} />
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
